/** The first page: the numbers, what needs attention, and every GPU. */
import { computed } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { BASE_API, FLEET } from '../../lib/api';
import { now } from '../../lib/connection';
import { clusterName, clusterNames } from '../../lib/declared';
import * as gpu from '../../lib/fleet';
import { fleet, GPU_STATES } from '../../lib/fleet';
import { count, money, percent, plural, spend } from '../../lib/format';
import { Live, Polled } from '../../lib/live';
import { href, query, setQuery, segment } from '../../lib/router';
import { HEALTH, lookOf, NODE_STATUS } from '../../lib/states';
import { NODE_FIELDS, providers, safety } from '../../lib/stores';
import { plain, shortUuids } from '../../lib/text';
import type { Instance, InstanceList, Node, ResourceList } from '../../lib/types';
import { Age, Badge, Copy, Empty, ErrorBox, Section, Spinner, Text } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Glyph } from '../../ui/glyph';
import { usePaletteActions } from '../../ui/palette';
import { Table, type Column } from '../../ui/table';
import { attention, type Attention } from './attention';
import { COLOURS, SCALES, type Colour } from './colours';
import './fleet.css';
import { groupOf, GROUPINGS, type Grouping } from './groups';
import { FleetMap } from './map';

/** Nodes that are not simply in service and well: few, even of many. */
const TROUBLED = "not (status = 'ACTIVE' and health = 'healthy' and liveness = 'Fresh') and status != 'TERMINATED'";
const troubled = new Live<Node>(`${FLEET}/nodes`, { fields: `${NODE_FIELDS},findings.ends_at,flaps,gpus.uuid`, search: TROUBLED });
const replacements = new Polled<InstanceList>(`${FLEET}/instances`, 5_000, { search: 'replaces is not null', size: 200, order: 'since desc' });
const notReady = ['clusters', 'nodepools'].map(
  (kind) => new Polled<ResourceList>(`${BASE_API}/${kind}`, 10_000, { search: "status.phase = 'Not Ready'", size: 50 }),
);

/** More than this is a page of its own. */
const ATTENTION_MAX = 5;

const items = computed(() => {
  void troubled.version.value;
  return attention({
    nodes: [...troubled.items.values()],
    brakes: safety.data.value,
    providers: providers.data.value?.items ?? [],
    resources: notReady.flatMap((one) => one.data.value?.items ?? []),
    clusterOf: clusterName,
    replacements: replacements.data.value?.items ?? [],
    now: now.value,
  });
});

function choice<T extends string>(name: string, all: readonly T[], otherwise: T): T {
  const wanted = query.value.get(name);
  return all.find((one) => one === wanted) ?? otherwise;
}

export default function Fleet() {
  useEffect(() => {
    const offs = [fleet, troubled, safety, providers, replacements, clusterNames, ...notReady].map((store) => store.use());
    return () => offs.forEach((off) => off());
  }, []);
  const by = choice<Grouping>('group', GROUPINGS, 'pool');
  const colour = choice<Colour>('color', COLOURS, 'health');
  const view = choice('view', ['map', 'table'] as const, 'map');
  const zoom = Math.min(8, Math.max(0, Number(query.value.get('zoom')) || 0));
  usePaletteActions(
    [
      ...GROUPINGS.map((one) => ({ kind: 'View', name: `Group the map by ${one}`, icon: 'fleet' as const, act: () => setQuery({ group: one }) })),
      ...COLOURS.map((one) => ({ kind: 'View', name: `Colour the map by ${one}`, icon: 'fleet' as const, act: () => setQuery({ color: one }) })),
    ],
    [],
  );
  const { model } = fleet;

  return (
    <>
      <h1 class="visually-hidden">Fleet</h1>
      <Numbers />
      <div class="fleet-top">
        <AttentionList />
        <Lately />
      </div>
      <Section
        title="Every GPU"
        aside={
          <>
            <Segments label="Group by" name="group" all={GROUPINGS} value={by} otherwise="pool" />
            <Segments label="Colour by" name="color" all={COLOURS} value={colour} otherwise="health" />
            <Segments label="Show as" name="view" all={['map', 'table'] as const} value={view} otherwise="map" />
            {view === 'map' && (
              <span class="segments" role="group" aria-label="Size of the cells">
                <button type="button" aria-label="Smaller cells" disabled={zoom === 0} onClick={() => setQuery({ zoom: zoom > 1 ? String(zoom - 1) : null })}>
                  −
                </button>
                <button type="button" aria-label="Larger cells" disabled={zoom === 8} onClick={() => setQuery({ zoom: String(zoom + 1) })}>
                  +
                </button>
              </span>
            )}
          </>
        }
      >
        {fleet.error.value && fleet.error.value.status !== 0 && !model.ready.value ? (
          <ErrorBox problem={fleet.error.value} />
        ) : !model.ready.value ? (
          <Spinner what="Reading the fleet" />
        ) : model.nodes.size === 0 ? (
          <Empty title="No node has registered yet">
            Create a cluster and a node pool, and its machines appear here as they register.
            <Equivalent cli="argosy nodepool create gpus -c demo --machine-type a3-highgpu-8g --nodes 4" />
          </Empty>
        ) : (
          <div class="panel map-panel" data-tour="map">
            {view === 'map' ? <FleetMap model={model} by={by} colour={colour} zoom={zoom} /> : <Twin by={by} />}
            <Legend colour={colour} />
          </div>
        )}
      </Section>
      <Equivalent cli="argosy top --gpus" call={{ path: `${FLEET}/fleet/gpus` }} />
    </>
  );
}

function Segments<T extends string>({ label, name, all, value, otherwise }: { label: string; name: string; all: readonly T[]; value: T; otherwise: T }) {
  return (
    <span class="segments" role="group" aria-label={label}>
      <span class="segments-label" aria-hidden="true">
        {label}
      </span>
      {all.map((one) => (
        <button key={one} type="button" aria-pressed={one === value} onClick={() => setQuery({ [name]: one === otherwise ? null : one })}>
          {one}
        </button>
      ))}
    </span>
  );
}

/** The numbers on top. Each leads to what it counts. */
function Numbers() {
  const { model } = fleet;
  void model.version.value;
  const of = (...states: number[]) => states.reduce((sum, state) => sum + (model.counts[state] ?? 0), 0);
  const total = model.gpus;
  const healthy = of(gpu.BUSY, gpu.IDLE);
  const idle = of(gpu.IDLE);
  const unhealthy = of(gpu.UNHEALTHY, gpu.UNREACHABLE);
  const repair = of(gpu.DRAINING, gpu.CORDONED);
  const degraded = of(gpu.DEGRADED, gpu.UNKNOWN);
  const cost = providers.data.value?.items.reduce((sum, one) => sum + one.cost_per_hour, 0);
  const unpriced = providers.data.value?.items.reduce((sum, one) => sum + (one.unpriced ?? 0), 0) ?? 0;
  const ready = model.ready.value;
  const numbers: [string, string, string, string, string][] = [
    ['GPUs', count(total), plural(model.nodes.size, 'node'), href('/nodes'), ''],
    ['Healthy', count(healthy), percent(healthy, total), href('/nodes', { q: "status = 'ACTIVE' and health = 'healthy'" }), 'ok'],
    ['Idle', count(idle), percent(idle, total), href('/nodes', { q: "status = 'ACTIVE' and health = 'healthy'", sort: 'util' }), 'idle'],
    ['Degraded', count(degraded), percent(degraded, total), href('/nodes', { q: "health in ('degraded', 'unknown')" }), 'warn'],
    ['Unhealthy', count(unhealthy), percent(unhealthy, total), href('/nodes', { q: "health = 'unhealthy' or liveness = 'Unreachable'" }), 'bad'],
    ['In repair', count(repair), percent(repair, total), href('/nodes', { q: "status in ('CORDONED', 'DRAINING')" }), 'move'],
    ['Cost per hour', cost === undefined ? '–' : spend(cost, unpriced), unpriced > 0 ? `${plural(unpriced, 'machine')} without a known price` : cost === undefined || total === 0 ? '' : `${money(cost / total)} a GPU`, href('/instances'), ''],
  ];
  return (
    <section class="fleet-numbers panel" aria-label="The fleet in numbers" data-tour="numbers">
      <ul>
        {numbers.map(([name, value, more, link, tone]) => (
          <li key={name}>
            <a href={link} class={tone ? `tone-${tone}` : ''}>
              <span class="number-name">
                {tone && <i aria-hidden="true" />}
                {name}
              </span>
              <span class="number-value live num">{ready || name === 'Cost per hour' ? value : '–'}</span>
              <span class="number-more num">{ready ? more : ''}</span>
            </a>
          </li>
        ))}
      </ul>
      <Composition counts={model.counts} total={total} />
    </section>
  );
}

/** The whole fleet as one bar. */
function Composition({ counts, total }: { counts: Int32Array; total: number }) {
  return (
    <div class="composition live" aria-hidden="true">
      {GPU_STATES.map((state, i) => {
        const share = total > 0 ? ((counts[i] ?? 0) / total) * 100 : 0;
        // Even a single sick GPU among thousands is seen.
        return share > 0 ? <i key={state.key} class={`tone-${state.tone}`} style={{ flexGrow: share, minWidth: '3px' }} title={`${state.word}: ${counts[i]}`} /> : null;
      })}
    </div>
  );
}

function AttentionList() {
  const all = items.value;
  const showAll = query.value.get('attention') === 'all';
  const shown = showAll ? all.slice(0, 200) : all.slice(0, ATTENTION_MAX);
  return (
    <Section
      title="Needs attention"
      tour="attention"
      aside={
        all.length > ATTENTION_MAX && (
          <button type="button" class="link-button" onClick={() => setQuery({ attention: showAll ? null : 'all' })}>
            {showAll ? 'Show the worst' : `Show all ${count(all.length)}`}
          </button>
        )
      }
    >
      {all.length === 0 ? (
        <p class="calm panel tone-ok">
          <Glyph name="check" />
          {troubled.ready.value ? 'Nothing needs attention. Every node is in service and well.' : 'Looking…'}
        </p>
      ) : (
        <ul class="attention panel">
          {shown.map((item) => (
            <AttentionItem key={item.key} item={item} />
          ))}
        </ul>
      )}
    </Section>
  );
}

/** Replacements of the last half hour: what Argosy did while nobody looked. */
const LATELY_MS = 30 * 60_000;
const LATELY_MAX = 5;

function Lately() {
  const list = (replacements.data.value?.items ?? [])
    .filter((one) => one.state === 'Running' && one.replaces && Date.parse(one.since) > now.value - LATELY_MS)
    .sort((a, b) => b.since.localeCompare(a.since));
  if (list.length === 0) return null;
  return (
    <Section title="Lately, by itself" aside={list.length > LATELY_MAX && <span class="muted">{count(list.length)} in half an hour</span>}>
      <ul class="lately panel">
        {list.slice(0, LATELY_MAX).map((one) => (
          <li key={one.id} class="tone-ok">
            <Glyph name="check" />
            <div>
              <p class="lately-what">
                <a href={href(`/nodes/${segment(one.replaces ?? '')}`, { tab: 'why' })}>
                  <Text value={one.replaces} mono max={60} brief />
                </a>
                <span aria-hidden="true"> → </span>
                <span class="visually-hidden"> was replaced by </span>
                <a href={href(`/nodes/${segment(one.node_id ?? one.id)}`)}>
                  <Text value={one.node_id ?? one.id} mono max={60} brief />
                </a>
              </p>
              <p class="lately-why muted" title={plain(one.why, 500)}>
                <Text value={causeOf(one)} max={160} brief />
              </p>
            </div>
            <span class="muted">
              <Age at={one.since} word={false} />
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** What is said of the old node, without the words that are the same for all. */
function causeOf(one: Instance): string {
  const why = one.why.replace(`${one.replaces ?? ''} is to be replaced: `, '');
  return shortUuids(/found: (.*)$/.exec(why)?.[1] ?? why);
}

const GLYPHS = { bad: 'cross', warn: 'triangle', held: 'bar', move: 'half', gone: 'dash', ok: 'check', idle: 'ring', unknown: 'query' } as const;

function AttentionItem({ item }: { item: Attention }) {
  return (
    <li class={`tone-${item.tone}`}>
      <span class="attention-glyph">
        <Glyph name={GLYPHS[item.tone]} />
      </span>
      <div class="attention-what">
        <p class="attention-head">
          <a href={item.link}>
            <Text value={item.what} max={140} brief />
          </a>
          {item.since && (
            <span class="muted attention-since">
              <Age at={item.since} />
            </span>
          )}
        </p>
        <p class="attention-why" title={plain(item.why, 500)}>
          <Text value={shortUuids(item.why)} max={220} brief />
        </p>
      </div>
      <div class="attention-then">
        <p class="attention-next" title={plain(item.next, 500)}>
          <span class="muted">{item.next ? 'Next by itself: ' : 'Next: '}</span>
          <Text value={item.next || 'somebody has to decide'} max={220} brief />
        </p>
        <p class="attention-command">
          <code>{item.command}</code>
          <Copy text={item.command} label={`Copy: ${item.command}`} />
        </p>
      </div>
    </li>
  );
}

function Legend({ colour }: { colour: Colour }) {
  const { model } = fleet;
  void model.version.value;
  if (colour === 'health')
    return (
      <ul class="legend" aria-label="Legend">
        {GPU_STATES.map((state, i) => (
          <li key={state.key} class={`tone-${state.tone}`} title={state.means}>
            <i aria-hidden="true" />
            <Glyph name={state.glyph} />
            {state.word}
            <span class="num muted live">{count(model.counts[i] ?? 0)}</span>
          </li>
        ))}
      </ul>
    );
  const { from, to, unit } = SCALES[colour];
  return (
    <p class="legend">
      <span class="num">
        {from} {unit}
      </span>
      <span class="legend-ramp" role="img" aria-label={`From ${from} to ${to} ${unit}, the more the stronger`} />
      <span class="num">
        {to} {unit}
      </span>
      <span class="legend-none">
        <i aria-hidden="true" /> not measured
      </span>
    </p>
  );
}

interface TwinRow {
  node: gpu.FleetNode;
  group: string;
}

/** The same as rows, for those who cannot see or point at a map. */
function Twin({ by }: { by: Grouping }) {
  const { model } = fleet;
  const version = model.version.value;
  const rows = useMemo<TwinRow[]>(() => [...model.nodes.values()].map((node) => ({ node, group: groupOf(node, by) })), [version, by]);
  const states = (node: gpu.FleetNode): string => {
    const counts = new Map<string, number>();
    for (let place = 0; place < node.gpus; place += 1) {
      const word = GPU_STATES[model.state[node.first + place] ?? 0]?.word ?? '';
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
    return [...counts].map(([word, many]) => `${many} ${word.toLowerCase()}`).join(', ') || 'no GPUs';
  };
  const most = (list: (number | null)[] | undefined) => (list && list.length > 0 ? Math.max(...list.map((one) => one ?? 0)) : null);
  const sum = (list: (number | null)[] | undefined) => (list ? list.reduce<number>((total, one) => total + (one ?? 0), 0) : null);
  const mean = (node: gpu.FleetNode) => (node.u && node.u.length > 0 ? Math.round((sum(node.u) ?? 0) / node.u.length) : null);
  const columns: Column<TwinRow>[] = [
    { key: 'id', head: 'Node', cell: ({ node }) => <Text value={node.id} max={60} brief mono />, value: ({ node }) => node.id },
    { key: 'group', head: by[0]?.toUpperCase() + by.slice(1), hide: 'phone', cell: ({ group }) => <Text value={group} max={60} brief />, value: ({ group }) => group },
    { key: 'status', head: 'Status', width: '124px', cell: ({ node }) => <Badge look={lookOf(NODE_STATUS, node.status)} />, value: ({ node }) => node.status },
    { key: 'health', head: 'Health', width: '110px', hide: 'phone', cell: ({ node }) => <Badge look={lookOf(HEALTH, node.health)} quiet />, value: ({ node }) => node.health },
    { key: 'gpus', head: 'GPUs', cell: ({ node }) => states(node), value: ({ node }) => states(node) },
    { key: 'temp', head: 'Hottest', end: true, hide: 'phone', width: '10ch', cell: ({ node }) => unit(most(node.t), '°C'), value: ({ node }) => most(node.t) },
    { key: 'util', head: 'Busy', end: true, hide: 'phone', width: '9ch', cell: ({ node }) => unit(mean(node), '%'), value: ({ node }) => mean(node) },
    { key: 'power', head: 'Power', end: true, hide: 'tablet', width: '10ch', cell: ({ node }) => unit(sum(node.w), 'W'), value: ({ node }) => sum(node.w) },
  ];
  return <Table label="Every node with its GPUs" columns={columns} rows={rows} rowKey={({ node }) => node.id} link={({ node }) => href(`/nodes/${segment(node.id)}`)} order="group" />;
}

function unit(value: number | null, name: string) {
  return value === null ? <span class="muted">–</span> : <span class="live">{`${count(value)} ${name}`}</span>;
}

