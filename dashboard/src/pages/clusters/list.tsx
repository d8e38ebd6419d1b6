/** All clusters, searched and sorted. */
import { useMemo } from 'preact/hooks';
import { BASE_API } from '../../lib/api';
import { shell } from '../../lib/command';
import { clusters, notReadyBecause, pools, RESOURCE_FIELDS } from '../../lib/declared';
import { count, plural } from '../../lib/format';
import { Live, useLive } from '../../lib/live';
import { specNumber, specText } from '../../lib/resource';
import { go, href, query, segment } from '../../lib/router';
import { toSearch } from '../../lib/search';
import { mayAct } from '../../lib/session';
import { lookOf, PHASE } from '../../lib/states';
import type { Resource } from '../../lib/types';
import { Age, Badge, Empty, ErrorBox, PageHead, Spinner, Text } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Icon } from '../../ui/glyph';
import { usePaletteActions } from '../../ui/palette';
import { SearchBox } from '../../ui/searchbox';
import { Table, type Column } from '../../ui/table';

const WORDS = ['name', 'phase', 'provider', 'region'] as const;

export const RESOURCE_SEARCH_FIELDS = [
  'id', 'name', 'phase', 'provider', 'region', 'labels.<key>', 'spec.<path>', 'status.conditions.<Type>', 'generation', 'created_time',
  'created_by', 'updated_time', 'updated_by', 'deleted_time', 'owner_id',
] as const;

const EXAMPLES = [
  "phase != 'Ready'",
  "labels.team = 'ml' and provider = 'gcp'",
  "status.conditions.Reconciled = 'False'",
  "created_time >= '2026-01-01T00:00:00Z'",
  "name like 'prod-%'",
] as const;

export default function Clusters() {
  const typed = query.value.get('q') ?? '';
  const search = toSearch(typed, WORDS);
  const store = useMemo(() => (search === '' ? clusters : new Live<Resource>(`${BASE_API}/clusters`, { fields: RESOURCE_FIELDS, search })), [search]);
  useLive(store);
  useLive(pools);
  const list = useMemo(() => [...store.items.values()], [store, store.version.value]);
  const sizes = useMemo(() => {
    const found = new Map<string, { pools: number; nodes: number }>();
    for (const pool of pools.items.values()) {
      const one = found.get(pool.cluster_id ?? '') ?? { pools: 0, nodes: 0 };
      found.set(pool.cluster_id ?? '', { pools: one.pools + 1, nodes: one.nodes + (specNumber(pool, 'nodeCount') ?? 1) });
    }
    return found;
  }, [pools.version.value]);
  const columns = useMemo(() => columnsOf(sizes), [sizes]);
  const problem = store.error.value;
  usePaletteActions([{ kind: 'Action', name: 'Create a cluster…', icon: 'plus', act: () => go(href('/create/cluster')), changes: true }], []);

  return (
    <>
      <PageHead
        title="Clusters"
        kicker={store.ready.value ? <span class="live">{plural(list.length, 'cluster')}{search && ' match'}</span> : 'What people declared'}
        actions={
          mayAct.value && (
            <a class="button button-primary" href={href('/create/cluster')}>
              <Icon name="plus" /> Create a cluster
            </a>
          )
        }
      />
      <SearchBox label="Search clusters" fields={WORDS} known={RESOURCE_SEARCH_FIELDS} examples={EXAMPLES} problem={problem} />
      {problem?.status === 400 ? null : problem && problem.status !== 0 ? (
        <ErrorBox problem={problem} />
      ) : !store.ready.value && !problem ? (
        <Spinner what="Reading clusters" />
      ) : (
        <Table
          label="Clusters"
          columns={columns}
          rows={list}
          rowKey={(one) => one.id}
          link={(one) => href(`/clusters/${segment(one.name)}`)}
          order="name"
          empty={
            search ? (
              <Empty title="No cluster matches">Change the search, or empty it with Esc.</Empty>
            ) : (
              <Empty title="There is no cluster yet">
                A cluster is where node pools live: a provider and a region.
                <Equivalent cli="argosy cluster create alpha --provider gcp --region us-east1 --wait" />
              </Empty>
            )
          }
        />
      )}
      <div class="page-foot">
        <Equivalent cli={shell('argosy', 'cluster', 'list', ...(search ? ['--search', search] : []))} call={{ path: `${BASE_API}/clusters`, query: { search, size: 1000 } }} />
      </div>
    </>
  );
}

function columnsOf(sizes: ReadonlyMap<string, { pools: number; nodes: number }>): Column<Resource>[] {
  const size = (one: Resource) => sizes.get(one.id) ?? { pools: 0, nodes: 0 };
  return [
    { key: 'name', head: 'Cluster', width: '20%', cell: (one) => <Text value={one.name} max={63} brief />, value: (one) => one.name },
    { key: 'phase', head: 'Phase', width: '124px', cell: (one) => <Badge look={lookOf(PHASE, one.status.phase)} />, value: (one) => one.status.phase },
    { key: 'provider', head: 'Provider', hide: 'phone', width: '10%', cell: (one) => <Text value={specText(one, 'provider')} max={30} brief />, value: (one) => specText(one, 'provider') },
    { key: 'region', head: 'Region', hide: 'phone', width: '12%', cell: (one) => <Text value={specText(one, 'region')} max={40} brief />, value: (one) => specText(one, 'region') },
    { key: 'pools', head: 'Pools', end: true, width: '8ch', cell: (one) => count(size(one).pools), value: (one) => size(one).pools },
    { key: 'nodes', head: 'Nodes', end: true, hide: 'phone', width: '8ch', cell: (one) => count(size(one).nodes), value: (one) => size(one).nodes },
    { key: 'gen', head: 'Gen', end: true, hide: 'tablet', width: '7ch', cell: (one) => count(one.generation), value: (one) => one.generation },
    { key: 'since', head: 'Since', end: true, width: '10ch', cell: (one) => <Age at={one.status.lastTransitionTime} word={false} />, value: (one) => -Date.parse(one.status.lastTransitionTime) },
    { key: 'why', head: 'Why', hide: 'phone', cell: (one) => <span class="muted"><Text value={notReadyBecause(one)} max={200} brief /></span>, value: notReadyBecause },
  ];
}
