/** All nodes, searched and sorted. */
import { useMemo, useRef } from 'preact/hooks';
import { FLEET } from '../../lib/api';
import { shell } from '../../lib/command';
import { fleet } from '../../lib/fleet';
import { count, plural } from '../../lib/format';
import { Live, useLive } from '../../lib/live';
import { href, query, segment, setQuery } from '../../lib/router';
import { toSearch } from '../../lib/search';
import { HEALTH, lookOf, NODE_STATUS } from '../../lib/states';
import { NODE_FIELDS, nodes } from '../../lib/stores';
import { shortUuids } from '../../lib/text';
import type { Node } from '../../lib/types';
import { Age, Badge, Empty, ErrorBox, PageHead, Spinner, Text } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { SearchBox } from '../../ui/searchbox';
import { Table, type Column } from '../../ui/table';

/** What plain words are looked for in. */
const WORDS = ['id', 'pool', 'zone', 'status', 'instance_type', 'hostname', 'gpu_serial', 'gpu_uuid'] as const;

export const NODE_SEARCH_FIELDS = [
  'id', 'pool', 'provider', 'region', 'zone', 'instance_type', 'status', 'health', 'health_reason', 'health_since', 'liveness', 'duty',
  'duty_by', 'duty_reason', 'automatic', 'hostname', 'internal_ip', 'kernel_version', 'agent', 'gpu_count', 'gpu_name', 'gpu_uuid',
  'gpu_serial', 'driver_version', 'registered_at', 'finding', 'rule', 'xid', 'flag', 'held_by', 'labels.<key>',
] as const;

const EXAMPLES = [
  "health = 'unhealthy'",
  "status in ('CORDONED', 'DRAINING') and automatic = true",
  'xid in (79, 48)',
  "liveness = 'Unreachable'",
  "gpu_name like '%H100%' and zone = 'us-east1-b'",
  'held_by is not null',
] as const;

export default function Nodes() {
  const typed = query.value.get('q') ?? '';
  const search = toSearch(typed, WORDS);
  const store = useMemo(
    () => (search === '' ? nodes : new Live<Node>(`${FLEET}/nodes`, { fields: NODE_FIELDS, search })),
    [search],
  );
  useLive(store);
  useLive(fleet);
  // Drawn anew with each measurement; sorted anew only where that is what it is sorted by.
  const tick = fleet.model.version.value;
  const byMeasure = /temp|util/.test(query.value.get('sort') ?? '') ? tick : 0;
  const everything = useMemo(() => [...store.items.values()], [store, store.version.value, byMeasure]);
  // Those that are gone for good are in the way, unless somebody asks for something in particular.
  const withGone = search !== '' || query.value.get('gone') === 'shown';
  const list = useMemo(() => (withGone ? everything : everything.filter((node) => node.status !== 'TERMINATED')), [everything, withGone]);
  const gone = everything.length - list.length;
  // While a new search is under way the old answer stays, so that the page does not blink with every key.
  const before = useRef<readonly Node[]>([]);
  if (store.ready.value) before.current = list;
  const shown = store.ready.value ? list : before.current;
  const problem = store.error.value;

  return (
    <>
      <PageHead
        title="Nodes"
        kicker={
          store.ready.value ? (
            <span class="live">
              {plural(list.length, 'node')}
              {search && ' found'}
              {gone > 0 && (
                <>
                  ,{' '}
                  <button type="button" class="link-button" onClick={() => setQuery({ gone: 'shown' })}>
                    {count(gone)} terminated not shown
                  </button>
                </>
              )}
            </span>
          ) : (
            'Every machine whose agent registered'
          )
        }
      />
      <SearchBox label="Search nodes" fields={WORDS} known={NODE_SEARCH_FIELDS} examples={EXAMPLES} problem={problem} />
      {problem && problem.status !== 400 && problem.status !== 0 && !store.ready.value ? (
        <ErrorBox problem={problem} />
      ) : !store.ready.value && shown.length === 0 && !problem ? (
        <Spinner what="Reading the fleet" />
      ) : (
        <Table
          label="Nodes"
          columns={COLUMNS}
          rows={shown}
          rowKey={(node) => node.id}
          link={(node) => href(`/nodes/${segment(node.id)}`)}
          order="id"
          empty={
            search ? (
              <Empty title="No node matches">Change the search, or empty it with Esc.</Empty>
            ) : (
              <Empty title="No node has registered yet">
                Create a node pool, or start an agent on a machine:
                <Equivalent cli="argosy-agent run --server http://127.0.0.1:8080" />
              </Empty>
            )
          }
        />
      )}
      <div class="page-foot">
        <Equivalent cli={shell('argosy', 'node', 'list', ...(search ? ['--search', search] : []))} call={{ path: `${FLEET}/nodes`, query: { search, size: 1000 } }} />
      </div>
    </>
  );
}

/** What the GPUs measure now, from the stream of the fleet. */
function measured(node: Node, what: 't' | 'u'): number[] {
  return (fleet.model.nodes.get(node.id)?.[what] ?? []).filter((value): value is number => typeof value === 'number');
}

function hottest(node: Node): number | null {
  const all = measured(node, 't');
  return all.length > 0 ? Math.max(...all) : null;
}

function busy(node: Node): number | null {
  const all = measured(node, 'u');
  return all.length > 0 ? all.reduce((sum, value) => sum + value, 0) / all.length : null;
}

/** What speaks against it, or why it is out of service. */
export function reasonOf(node: Node): string {
  if (node.held) return `held: ${node.held.reason}`;
  const worst = node.findings?.find((finding) => finding.severity === 'unhealthy') ?? node.findings?.[0];
  if (worst) return worst.message;
  return node.duty.state === 'Active' ? '' : (node.duty.reason ?? '');
}

const COLUMNS: Column<Node>[] = [
  { key: 'id', head: 'Node', cell: (node) => <Text value={node.id} max={80} brief mono />, value: (node) => node.id, width: '18%' },
  {
    key: 'status',
    head: 'Status',
    cell: (node) => <Badge look={lookOf(NODE_STATUS, node.status)} />,
    value: (node) => node.status,
    width: '124px',
  },
  {
    key: 'health',
    head: 'Health',
    cell: (node) => <Badge look={lookOf(HEALTH, node.health.status)} quiet />,
    value: (node) => node.health.status,
    width: '110px',
  },
  { key: 'pool', head: 'Pool', hide: 'phone', cell: (node) => <Text value={node.pool} max={60} brief />, value: (node) => node.pool, width: '13%' },
  { key: 'zone', head: 'Zone', hide: 'tablet', cell: (node) => <Text value={node.zone} max={40} brief />, value: (node) => node.zone, width: '11%' },
  { key: 'gpus', head: 'GPUs', end: true, hide: 'phone', width: '6ch', cell: (node) => count(node.gpus.length), value: (node) => node.gpus.length },
  {
    key: 'temp',
    head: 'Hottest',
    end: true,
    hide: 'phone',
    width: '9ch',
    cell: (node) => <span class="live">{hottest(node) === null ? '–' : `${hottest(node)} °C`}</span>,
    value: hottest,
  },
  {
    key: 'util',
    head: 'Busy',
    end: true,
    hide: 'phone',
    width: '8ch',
    cell: (node) => <span class="live">{busy(node) === null ? '–' : `${Math.round(busy(node) ?? 0)} %`}</span>,
    value: busy,
  },
  { key: 'since', head: 'Since', end: true, hide: 'tablet', width: '10ch', cell: (node) => <Age at={node.duty.since ?? node.health.since} word={false} />, value: (node) => -Date.parse(node.duty.since ?? node.health.since) },
  { key: 'reason', head: 'Why', hide: 'phone', cell: (node) => <span class="muted"><Text value={shortUuids(reasonOf(node))} max={160} brief /></span>, value: reasonOf },
];
