/** Clusters and node pools as lists that keep themselves current, and what is said about them. */
import { BASE_API } from './api';
import { Live, Polled } from './live';
import { allPages } from './pages';
import type { Resource, ResourceList } from './types';

/** All that lists and dialogs read. */
export const RESOURCE_FIELDS = 'name,uid,kind,spec,labels,generation,revision,status,cluster_id,created_time,updated_time,deleted_time,created_by,updated_by';

export const clusters = new Live<Resource>(`${BASE_API}/clusters`, { fields: RESOURCE_FIELDS });

/** The pools of all clusters; their ids are names, which clusters may share. */
export const pools = new Live<Resource>(`${BASE_API}/nodepools`, { fields: RESOURCE_FIELDS }, (pool) => pool.uid);

/** Only names, and asked for now and then: a stream would be one more of the six that a browser has. */
export const clusterNames = new Polled<ResourceList>(`${BASE_API}/clusters`, 15_000, { fields: 'name' }, allPages);

/** The cluster a pool belongs to, by name where it is known. */
export function clusterName(pool: Resource): string {
  return clusterNamed(pool.cluster_id ?? '');
}

/** The name of a cluster that is called by its name or by its id, as an address may. */
export function clusterNamed(called: string): string {
  return clusterNames.data.value?.items.find((one) => one.id === called)?.name ?? clusters.items.get(called)?.name ?? called;
}

/** Why something is not ready, in one sentence: the adapter that says so, else the whole. */
export function notReadyBecause(resource: Resource): string {
  if (resource.status.phase === 'Ready') return '';
  const bad = resource.status.conditions.filter((one) => one.status === 'False' && !/^(?:Reconciled|LastKnownReconciled)$/.test(one.type));
  const one = bad.find((each) => each.type === 'Healthy') ?? bad[0] ?? resource.status.conditions.find((each) => each.type === 'Reconciled' && each.status !== 'True');
  return one?.message ?? '';
}
