/** The node pools of all clusters, searched and sorted. */
import { useMemo } from 'preact/hooks';
import { BASE_API, FLEET } from '../../lib/api';
import { shell } from '../../lib/command';
import { clusterName, clusterNames, notReadyBecause, pools, RESOURCE_FIELDS } from '../../lib/declared';
import { count, plural, spend } from '../../lib/format';
import { costs } from '../../lib/money';
import { Live, useLive } from '../../lib/live';
import { specNumber, specText } from '../../lib/resource';
import { go, href, query, segment } from '../../lib/router';
import { toSearch } from '../../lib/search';
import { mayAct } from '../../lib/session';
import { lookOf, PHASE } from '../../lib/states';
import type { Instance, Resource } from '../../lib/types';
import { Age, Badge, Empty, ErrorBox, PageHead, Spinner, Text } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Icon } from '../../ui/glyph';
import { usePaletteActions } from '../../ui/palette';
import { SearchBox } from '../../ui/searchbox';
import { Table, type Column } from '../../ui/table';
import { RESOURCE_SEARCH_FIELDS } from '../clusters/list';

const WORDS = ['name', 'phase', 'spec.machineType', 'provider', 'region'] as const;

const EXAMPLES = [
  "phase != 'Ready'",
  'spec.nodeCount > 10',
  "spec.machineType like '%highgpu%'",
  "labels.team in ('ml', 'research')",
  'spec.autoscaling is not null',
] as const;

/** What is bought for a pool, for the columns beside what was asked. */
const machines = new Live<Instance>(`${FLEET}/instances`, { search: 'open = true', fields: 'pool_id,state,cost_per_hour' });

interface Size {
  running: number;
  other: number;
  cost: number;
  unpriced: number;
}

export default function Pools() {
  const typed = query.value.get('q') ?? '';
  const search = toSearch(typed, WORDS);
  const store = useMemo(
    () => (search === '' ? pools : new Live<Resource>(`${BASE_API}/nodepools`, { fields: RESOURCE_FIELDS, search }, (pool) => pool.uid)),
    [search],
  );
  useLive(store);
  useLive(clusterNames);
  useLive(machines);
  const list = useMemo(() => [...store.items.values()], [store, store.version.value]);
  const sizes = useMemo(() => {
    const found = new Map<string, Size>();
    for (const one of machines.items.values()) {
      const size = found.get(one.pool_id) ?? { running: 0, other: 0, cost: 0, unpriced: 0 };
      if (one.state === 'Running') size.running += 1;
      else size.other += 1;
      size.cost += one.cost_per_hour ?? 0;
      size.unpriced += costs([one]).unpriced;
      found.set(one.pool_id, size);
    }
    return found;
  }, [machines.version.value]);
  const columns = useMemo(() => columnsOf(sizes), [sizes, clusterNames.data.value]);
  const problem = store.error.value;
  usePaletteActions([{ kind: 'Action', name: 'Create a node pool…', icon: 'plus', act: () => go(href('/create/pool')), changes: true }], []);
  return (
    <>
      <PageHead
        title="Node pools"
        kicker={store.ready.value ? <span class="live">{plural(list.length, 'node pool')}{search && ' match'}</span> : 'As many machines as people asked for'}
        actions={
          mayAct.value && (
            <a class="button button-primary" href={href('/create/pool')}>
              <Icon name="plus" /> Create a node pool
            </a>
          )
        }
      />
      <SearchBox label="Search node pools" fields={WORDS} known={RESOURCE_SEARCH_FIELDS} examples={EXAMPLES} problem={problem} />
      {problem?.status === 400 ? null : problem && problem.status !== 0 ? (
        <ErrorBox problem={problem} />
      ) : !store.ready.value && !problem ? (
        <Spinner what="Reading node pools" />
      ) : (
        <Table
          label="Node pools"
          columns={columns}
          rows={list}
          rowKey={(one) => one.uid}
          link={(one) => href(`/clusters/${segment(clusterName(one))}/pools/${segment(one.name)}`)}
          order="name"
          empty={
            search ? (
              <Empty title="No node pool matches">Change the search, or empty it with Esc.</Empty>
            ) : (
              <Empty title="There is no node pool yet">
                A node pool is a number of machines of one type, in a cluster.
                <Equivalent cli="argosy nodepool create workers -c alpha --machine-type n1-standard-4 --nodes 3 --wait" />
              </Empty>
            )
          }
        />
      )}
      <div class="page-foot">
        <Equivalent cli={shell('argosy', 'nodepool', 'list', ...(search ? ['--search', search] : []))} call={{ path: `${BASE_API}/nodepools`, query: { search, size: 1000 } }} />
      </div>
    </>
  );
}

function columnsOf(sizes: ReadonlyMap<string, Size>): Column<Resource>[] {
  const wanted = (one: Resource) => specNumber(one, 'nodeCount') ?? 1;
  const size = (one: Resource) => sizes.get(one.uid) ?? { running: 0, other: 0, cost: 0, unpriced: 0 };
  return [
    {
      key: 'name',
      head: 'Node pool',
      width: '20%',
      cell: (one) => (
        <>
          <span class="muted">
            <Text value={clusterName(one)} max={40} brief />.
          </span>
          <Text value={one.name} max={63} brief />
        </>
      ),
      value: (one) => `${clusterName(one)}.${one.name}`,
    },
    { key: 'phase', head: 'Phase', width: '124px', cell: (one) => <Badge look={lookOf(PHASE, one.status.phase)} />, value: (one) => one.status.phase },
    { key: 'type', head: 'Machine type', hide: 'phone', width: '14%', cell: (one) => <Text value={specText(one, 'machineType')} max={60} brief />, value: (one) => specText(one, 'machineType') },
    { key: 'wanted', head: 'Wanted', end: true, width: '9ch', cell: (one) => count(wanted(one)), value: wanted },
    { key: 'running', head: 'Running', end: true, width: '10ch', cell: (one) => <span class={`live${size(one).running < wanted(one) ? ' tone-warn toned' : ''}`}>{count(size(one).running)}</span>, value: (one) => size(one).running },
    { key: 'other', head: 'Moving', end: true, hide: 'tablet', width: '9ch', cell: (one) => <span class="live">{size(one).other === 0 ? '–' : count(size(one).other)}</span>, value: (one) => size(one).other },
    { key: 'cost', head: '$/h', end: true, hide: 'phone', width: '18ch', cell: (one) => <span class="live">{spend(size(one).cost, size(one).unpriced)}</span>, value: (one) => size(one).cost },
    { key: 'since', head: 'Since', end: true, hide: 'phone', width: '10ch', cell: (one) => <Age at={one.status.lastTransitionTime} word={false} />, value: (one) => -Date.parse(one.status.lastTransitionTime) },
    { key: 'why', head: 'Why', hide: 'phone', cell: (one) => <span class="muted"><Text value={notReadyBecause(one)} max={200} brief /></span>, value: notReadyBecause },
  ];
}
