/** One cluster: what was asked for, what is, who is at work, and its pools. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { FLEET, type Problem } from '../../lib/api';
import { shell } from '../../lib/command';
import { clusterNamed, clusterNames } from '../../lib/declared';
import { notReadyBecause } from '../../lib/declared';
import { plural, spend } from '../../lib/format';
import { Live, Polled, useLive } from '../../lib/live';
import { allPages } from '../../lib/pages';
import { specNumber, specText } from '../../lib/resource';
import { go, href, segment } from '../../lib/router';
import { text } from '../../lib/search';
import { mayAct } from '../../lib/session';
import { lookOf, PHASE } from '../../lib/states';
import { plain } from '../../lib/text';
import type { InstanceList, Resource } from '../../lib/types';
import type { PageProps } from '../../routes';
import { Age, Badge, Copy, Empty, ErrorBox, PageHead, Section, Spinner, Text } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Icon } from '../../ui/glyph';
import { usePaletteActions } from '../../ui/palette';
import { Table, type Column } from '../../ui/table';
import { tabOf, Tabs } from '../../ui/tabs';
import { clusterPlace, YamlTab } from '../resource/edit';
import { AdapterLanes, Blocking, Conditions, DesiredObserved, History } from '../resource/parts';
import { useReports } from '../resource/reports';
import { DeleteDialog } from '../resource/remove';

const TABS = [
  { key: 'now', name: 'Overview' },
  { key: 'history', name: 'History' },
  { key: 'yaml', name: 'YAML' },
] as const;

export default function ClusterPage({ params }: PageProps) {
  useLive(clusterNames);
  // Machines know their pool by the name of its cluster.
  const name = clusterNamed(params['cluster'] ?? '');
  const place = clusterPlace(name);
  const store = useLive(useMemo(() => new Live<Resource>(place.path), [name]));
  const pools = useLive(useMemo(() => new Live<Resource>(`${place.path}/nodepools`, {}, (pool) => pool.uid), [name]));
  const machines = useLive(useMemo(() => new Polled<InstanceList>(`${FLEET}/instances`, 10_000, { search: `open = true and pool like ${text(`${name}.%`)}`, fields: 'state,cost_per_hour' }, allPages), [name]));
  void store.version.value;
  void pools.version.value;
  const cluster = [...store.items.values()][0];
  const reports = useReports(place.path, cluster?.revision);
  const deleting = useSignal(false);
  const list = [...pools.items.values()];
  const instances = machines.data.value?.items ?? [];
  const total = machines.data.value?.total ?? 0;
  const changeable = cluster !== undefined && cluster.deleted_time === undefined;
  usePaletteActions(
    changeable
      ? [
          { kind: 'Action', name: `Add a node pool to ${name}…`, icon: 'plus', act: () => go(href('/create/pool', { cluster: name })), changes: true },
          { kind: 'Action', name: `Delete the cluster ${name}…`, icon: 'close', act: () => (deleting.value = true), changes: true },
        ]
      : [],
    [name, changeable],
  );

  if (!cluster) {
    if (store.error.value) return <Missing name={name} what="cluster" problem={store.error.value} />;
    if (store.ready.value)
      return (
        <Empty title={`The cluster ${plain(name, 80)} is deleted`}>
          All adapters cleaned up. <a href={href('/clusters')}>All clusters</a>
        </Empty>
      );
    return <Spinner what="Reading the cluster" />;
  }
  const tab = tabOf(TABS);
  return (
    <>
      <PageHead
        kicker={
          <>
            <a href={href('/clusters')}>Clusters</a> / <Text value={specText(cluster, 'provider')} max={30} /> <Text value={specText(cluster, 'region')} max={40} />
          </>
        }
        title={
          <>
            <Text value={cluster.name} max={63} />
            <Copy text={cluster.name} label="Copy the name" />
          </>
        }
        state={<Badge look={lookOf(PHASE, cluster.status.phase)} />}
        actions={
          mayAct.value &&
          changeable && (
            <>
              <a class="button" href={href('/create/pool', { cluster: name })}>
                <Icon name="plus" /> Add a node pool
              </a>
              <button type="button" class="button button-danger" onClick={() => (deleting.value = true)}>
                Delete…
              </button>
            </>
          )
        }
      />
      <Blocking resource={cluster} reports={reports} />
      <Tabs tabs={TABS} label="Parts of this page" />
      {tab === 'now' && (
        <>
          <DesiredObserved resource={cluster} reports={reports} />
          <AdapterLanes resource={cluster} reports={reports} />
          <Section title="Node pools" aside={<span class="muted live">{total > 0 && `${plural(total, 'machine')}, ${spend(machines.data.value?.cost_per_hour ?? 0, machines.data.value?.unpriced)} an hour`}</span>}>
            <Table
              label="Node pools"
              columns={POOLS}
              rows={list}
              rowKey={(one) => one.uid}
              link={(one) => href(`/clusters/${segment(name)}/pools/${segment(one.name)}`)}
              order="name"
              empty={
                <Empty title="This cluster has no node pools">
                  Add one to get machines:
                  <Equivalent cli={shell('argosy', 'nodepool', 'create', 'workers', '-c', name, '--nodes', '3', '--wait')} />
                </Empty>
              }
            />
          </Section>
          <Conditions resource={cluster} />
          <Equivalent cli={shell('argosy', 'why', `cluster/${name}`)} call={{ path: `${place.path}/statuses` }} />
        </>
      )}
      {tab === 'history' && (
        <>
          <History reports={reports} />
          <div class="page-foot">
            <Equivalent cli={shell('argosy', 'cluster', 'statuses', name)} call={{ path: `${place.path}/statuses/history` }} />
          </div>
        </>
      )}
      {tab === 'yaml' && <YamlTab resource={cluster} place={place} onApplied={(now) => store.put(now)} />}
      {deleting.value && <DeleteDialog resource={cluster} place={place} pools={list} instances={instances} machines={total} onClose={() => (deleting.value = false)} />}
    </>
  );
}

export function Missing({ name, what, problem }: { name: string; what: string; problem: Problem }) {
  const to = LISTS[what] ?? '/';
  return (
    <>
      <PageHead title={<Text value={name} max={120} />} kicker={what} />
      <ErrorBox problem={problem} />
      <p class="page-foot">
        <a href={href(to)}>All of them</a>, or <kbd>Ctrl</kbd> <kbd>K</kbd> to find it by a part of its name.
      </p>
    </>
  );
}

const LISTS: Record<string, string> = { cluster: '/clusters', 'node pool': '/pools', instance: '/instances', policy: '/policies' };

const POOLS: Column<Resource>[] = [
  { key: 'name', head: 'Node pool', width: '22%', cell: (one) => <Text value={one.name} max={63} brief />, value: (one) => one.name },
  { key: 'phase', head: 'Phase', width: '124px', cell: (one) => <Badge look={lookOf(PHASE, one.status.phase)} />, value: (one) => one.status.phase },
  { key: 'type', head: 'Machine type', hide: 'phone', width: '18%', cell: (one) => <Text value={specText(one, 'machineType')} max={60} brief />, value: (one) => specText(one, 'machineType') },
  { key: 'nodes', head: 'Nodes', end: true, width: '8ch', cell: (one) => specNumber(one, 'nodeCount') ?? 1, value: (one) => specNumber(one, 'nodeCount') ?? 1 },
  { key: 'since', head: 'Since', end: true, width: '10ch', cell: (one) => <Age at={one.status.lastTransitionTime} word={false} />, value: (one) => -Date.parse(one.status.lastTransitionTime) },
  { key: 'why', head: 'Why', hide: 'phone', cell: (one) => <span class="muted"><Text value={notReadyBecause(one)} max={200} brief /></span>, value: notReadyBecause },
];
