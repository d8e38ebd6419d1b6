/** What several pages look at. Each is fetched only while somebody looks. */
import { computed } from '@preact/signals';
import { FLEET } from './api';
import { Live, Polled } from './live';
import type { Brakes, Node, ProviderList, RecoveryList } from './types';

/** What lists read of a node, and no more. What its GPUs measure comes from the stream of the fleet. */
export const NODE_FIELDS = [
  'pool',
  'provider',
  'region',
  'zone',
  'instance_type',
  'hostname',
  'status',
  'health',
  'liveness',
  'liveness_since',
  'duty',
  'held',
  'labels',
  'flags',
  'registered_at',
  'findings.severity',
  'findings.gpu',
  'findings.rule',
  'findings.message',
  'findings.first_seen',
  'gpus.index',
].join(',');

/** All nodes there are, by their ids. */
export const nodes = new Live<Node>(`${FLEET}/nodes`, { fields: NODE_FIELDS });

/** Pauses, breakers, budgets: always on the page, hence often asked. */
export const safety = new Polled<Brakes>(`${FLEET}/safety`, 3_000);

/** What waits for a confirmation after lost history: a banner on every page. */
export const recovery = new Polled<RecoveryList>(`${FLEET}/recovery`, 10_000);

export const providers = new Polled<ProviderList>(`${FLEET}/providers`, 10_000);

/** The one sentence about automatic action. */
export const acting = computed(() => {
  const brakes = safety.data.value;
  if (!brakes) return null;
  const everywhere = brakes.pauses.find((pause) => !pause.pool);
  return {
    everywhere,
    pools: brakes.pauses.filter((pause) => pause.pool),
    breakers: brakes.breakers,
    fleet: brakes.budgets.find((budget) => budget.scope === 'fleet'),
    /** The scope that has least left, beside the fleet itself. */
    tightest: brakes.budgets
      .filter((budget) => budget.scope !== 'fleet' && budget.allowed > 0)
      .sort((a, b) => b.used / b.allowed - a.used / a.allowed)[0],
    isolated: brakes.isolated,
    amnesty: brakes.amnesty,
  };
});
