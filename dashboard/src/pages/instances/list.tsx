/** What is bought, what it costs, which part of it does no work, and what nobody knows. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { asProblem, FLEET, post, type Problem } from '../../lib/api';
import { shell } from '../../lib/command';
import { count, money, percent, plural, spend } from '../../lib/format';
import { Live, Polled, useLive } from '../../lib/live';
import { shares, total, wasteOf, type Cut, type Share } from '../../lib/money';
import { href, query, segment, setQuery } from '../../lib/router';
import { text, toSearch } from '../../lib/search';
import { mayAdminister } from '../../lib/session';
import { INSTANCE, lookOf } from '../../lib/states';
import { nodes, providers } from '../../lib/stores';
import type { Instance, Node, Orphan, OrphanList } from '../../lib/types';
import { Age, Badge, Copy, Empty, ErrorBox, Meter, PageHead, Section, Spinner, Text } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Dialog } from '../../ui/dialog';
import { Glyph } from '../../ui/glyph';
import { SearchBox } from '../../ui/searchbox';
import { Table, type Column } from '../../ui/table';
import { Segments, tabOf, Tabs } from '../../ui/tabs';
import { toast } from '../../ui/toast';

const WORDS = ['id', 'pool', 'state', 'provider', 'region', 'zone', 'machine_type', 'node_id', 'machine_id'] as const;
const KNOWN = ['id', 'state', 'pool', 'pool_id', 'node_id', 'provider', 'region', 'zone', 'machine_type', 'machine_id', 'spot', 'image', 'number', 'cost_per_hour', 'ordered_at', 'since', 'why', 'reason', 'status_message', 'replaces', 'tried', 'open'] as const;
const EXAMPLES = ["state = 'Terminating'", 'cost_per_hour > 20', "provider = 'aws' and spot = true", 'replaces is not null', "state = 'Failed'"] as const;

export const orphans = new Polled<OrphanList>(`${FLEET}/orphans`, 10_000);
const open = new Live<Instance>(`${FLEET}/instances`, { search: 'open = true' });

const CUTS: readonly (readonly [Cut, string])[] = [
  ['pool', 'Pool'],
  ['provider', 'Provider'],
  ['region', 'Region'],
  ['machine_type', 'Type'],
];

export default function Instances() {
  const typed = query.value.get('q') ?? '';
  const search = toSearch(typed, WORDS);
  const past = query.value.get('all') === 'yes';
  const asked = [search && `(${search})`, past ? '' : 'open = true'].filter(Boolean).join(' and ');
  const store = useMemo(() => (asked === 'open = true' ? open : new Live<Instance>(`${FLEET}/instances`, asked ? { search: asked } : {})), [asked]);
  useLive(store);
  useLive(nodes);
  useLive(orphans);
  useLive(providers);
  const list = useMemo(() => [...store.items.values()], [store, store.version.value]);
  const lost = orphans.data.value?.items ?? [];
  const sum = useMemo(() => total(list, nodes.items, search ? [] : lost), [list, nodes.version.value, lost, search]);
  const cut = (query.value.get('by') ?? 'pool') as Cut;
  const parts = useMemo(() => shares(list, nodes.items, CUTS.some(([key]) => key === cut) ? cut : 'pool'), [list, nodes.version.value, cut]);
  const columns = useMemo(() => columnsOf(nodes.items), [nodes.version.value]);
  const problem = store.error.value;
  const tabs = [
    { key: 'list', name: 'Machines', count: list.length },
    { key: 'money', name: 'Money' },
    { key: 'orphans', name: 'Orphans', count: lost.length },
    { key: 'providers', name: 'Providers' },
  ];
  const tab = tabOf(tabs);

  return (
    <>
      <PageHead title="Instances" kicker="What is bought, where it runs, and what it costs" />
      <dl class="numbers live">
        <Number name="Machines" value={count(sum.machines)} />
        <Number name="Now" value={`${spend(sum.cost, sum.unpriced)} an hour`} also={sum.unpriced > 0 ? `${plural(sum.unpriced, 'machine')} without a known price` : `${money(sum.cost * 24 * 30)} in 30 days`} />
        <Number name="Doing no work" value={nodes.ready.value ? `${money(sum.wasted)}/h` : '…'} also={!nodes.ready.value ? 'asking what their nodes do' : sum.reasons.length > 0 ? sum.reasons.slice(0, 3).map((one) => `${one.machines} ${one.reason}`).join(', ') : 'nothing is idle by our doing'} tone={sum.wasted > 0 ? 'warn' : undefined} />
        <Number name="Orphans" value={`${spend(orphans.data.value?.cost_per_hour ?? 0, orphans.data.value?.unpriced)} an hour`} also={plural(lost.length, 'machine')} tone={lost.length > 0 ? 'bad' : undefined} to={href('/instances', { tab: 'orphans' })} />
      </dl>
      <Tabs tabs={tabs} label="Parts of this page" />
      {tab === 'list' && (
        <>
          <SearchBox label="Search instances" fields={WORDS} known={KNOWN} examples={EXAMPLES} problem={problem} />
          <p class="above-table">
            <label class="check">
              <input type="checkbox" checked={past} onChange={(event) => setQuery({ all: event.currentTarget.checked ? 'yes' : null })} /> Also those that are returned or failed
            </label>
          </p>
          {problem?.status === 400 ? null : problem && problem.status !== 0 ? (
            <ErrorBox problem={problem} />
          ) : !store.ready.value && !problem ? (
            <Spinner what="Reading instances" />
          ) : (
            <Table
              label="Instances"
              columns={columns}
              rows={list}
              rowKey={(one) => one.id}
              link={(one) => href(`/instances/${segment(one.id)}`)}
              order="id"
              empty={
                search ? (
                  <Empty title="No instance matches">Change the search, or empty it with Esc.</Empty>
                ) : (
                  <Empty title="No machine is bought">
                    Node pools buy machines. Create one:
                    <Equivalent cli="argosy nodepool create workers -c alpha --nodes 3 --wait" />
                  </Empty>
                )
              }
            />
          )}
          <div class="page-foot">
            <Equivalent cli={shell('argosy', 'instance', 'list', ...(past ? [] : ['--open']), ...(search ? ['--search', search] : []))} call={{ path: `${FLEET}/instances`, query: { search: asked, size: 1000 } }} />
          </div>
        </>
      )}
      {tab === 'money' && (
        <Section title="Cost per hour" aside={<Segments label="By" value={cut} options={CUTS} onChange={(value) => setQuery({ by: value === 'pool' ? null : value })} />}>
          <Table
            label="Cost per hour"
            columns={shareColumns(cut, sum.cost, parts[0]?.cost ?? 0)}
            rows={parts}
            rowKey={(one) => one.name}
            order="-cost"
            parameter="money"
            empty={<Empty title="Nothing is bought">So nothing is paid.</Empty>}
          />
          {sum.reasons.length > 0 && (
            <Section title="What does no work">
              <Table
                label="What does no work"
                columns={[
                  { key: 'reason', head: 'Why', cell: (one) => one.reason, value: (one) => one.reason, width: '40%' },
                  { key: 'machines', head: 'Machines', end: true, cell: (one) => count(one.machines), value: (one) => one.machines, width: '14ch' },
                  { key: 'cost', head: '$/h', end: true, cell: (one) => money(one.cost), value: (one) => one.cost, width: '14ch' },
                  { key: 'part', head: 'Of all', end: true, cell: (one) => percent(one.cost, sum.cost), value: (one) => one.cost, width: '10ch' },
                ]}
                rows={sum.reasons}
                rowKey={(one) => one.reason}
                order="-cost"
                parameter="waste"
              />
            </Section>
          )}
        </Section>
      )}
      {tab === 'orphans' && <Orphans list={lost} />}
      {tab === 'providers' && <Providers />}
    </>
  );
}

function Number({ name, value, also, tone, to }: { name: string; value: string; also?: string; tone?: string; to?: string }) {
  return (
    <div class={tone ? `tone-${tone}` : ''}>
      <dt>{name}</dt>
      <dd class={tone ? 'toned' : ''}>{to ? <a href={to}>{value}</a> : value}</dd>
      {also && <dd class="numbers-also">{also}</dd>}
    </div>
  );
}

function columnsOf(known: ReadonlyMap<string, Node>): Column<Instance>[] {
  const waste = (one: Instance) => wasteOf(one, known.get(one.node_id ?? ''));
  return [
    { key: 'id', head: 'Instance', width: '15%', cell: (one) => <Text value={one.id} max={80} brief mono />, value: (one) => one.id },
    {
      key: 'state',
      head: 'State',
      width: '142px',
      cell: (one) => (
        <>
          <Badge look={lookOf(INSTANCE, one.state)} />
          {one.overdue && <span class="tone-bad toned" title="It takes longer than it may"> overdue</span>}
        </>
      ),
      value: (one) => one.state,
    },
    { key: 'pool', head: 'Pool', hide: 'phone', width: '12%', cell: (one) => <PoolLink pool={one.pool} />, value: (one) => one.pool },
    { key: 'place', head: 'Place', hide: 'tablet', width: '11%', cell: (one) => <Text value={`${one.provider} ${one.zone ?? one.region}`} max={60} brief />, value: (one) => `${one.provider} ${one.zone ?? one.region}` },
    { key: 'type', head: 'Type', hide: 'phone', width: '12%', cell: (one) => <Text value={`${one.machine_type}${one.spot ? ' · spot' : ''}`} max={60} brief />, value: (one) => one.machine_type },
    { key: 'age', head: 'Age', end: true, width: '92px', cell: (one) => <Age at={one.ordered_at} word={false} />, value: (one) => -Date.parse(one.ordered_at) },
    { key: 'cost', head: '$/h', end: true, width: '88px', cell: (one) => (one.cost_per_hour === undefined ? '–' : money(one.cost_per_hour)), value: (one) => one.cost_per_hour },
    { key: 'waste', head: 'No work', hide: 'phone', width: '116px', cell: (one) => <span class="tone-warn toned">{waste(one)}</span>, value: (one) => waste(one) ?? undefined },
    { key: 'why', head: 'Why', hide: 'tablet', cell: (one) => <span class="muted"><Text value={one.reason ?? one.why} max={160} brief /></span>, value: (one) => one.reason ?? one.why },
  ];
}

/** `cluster.pool` as a link to its page; another shape is only text. */
export function PoolLink({ pool }: { pool: string }) {
  const [cluster, name, ...rest] = pool.split('.');
  if (!cluster || !name || rest.length > 0) return <Text value={pool} max={80} brief />;
  return (
    <a href={href(`/clusters/${segment(cluster)}/pools/${segment(name)}`)}>
      <Text value={pool} max={80} brief />
    </a>
  );
}

function shareColumns(cut: Cut, all: number, most: number): Column<Share>[] {
  const field = cut === 'region' ? 'region' : cut;
  const link = (one: Share) => {
    const [provider = '', ...rest] = one.name.split(' ');
    return href('/instances', { q: cut === 'region' ? `provider = ${text(provider)} and region = ${text(rest.join(' '))}` : `${field} = ${text(one.name)}` });
  };
  return [
    { key: 'name', head: CUTS.find(([key]) => key === cut)?.[1] ?? 'Pool', width: '26%', cell: (one) => <a href={link(one)}><Text value={one.name} max={80} brief /></a>, value: (one) => one.name },
    { key: 'machines', head: 'Machines', end: true, width: '11ch', cell: (one) => count(one.machines), value: (one) => one.machines },
    { key: 'cost', head: '$/h', end: true, width: '18ch', cell: (one) => spend(one.cost, one.unpriced), value: (one) => one.cost },
    { key: 'part', head: 'Of all', end: true, hide: 'phone', width: '10ch', cell: (one) => percent(one.cost, all), value: (one) => one.cost },
    { key: 'wasted', head: 'No work $/h', end: true, width: '13ch', cell: (one) => (one.wasted > 0 ? <span class="tone-warn toned">{money(one.wasted)}</span> : '–'), value: (one) => one.wasted },
    { key: 'bar', head: 'Beside the dearest', hide: 'phone', cell: (one) => <Meter part={one.cost} whole={most} tone={one.wasted > one.cost / 2 ? 'warn' : 'ok'} label={`${money(one.cost)} an hour`} /> },
  ];
}

function Orphans({ list }: { list: readonly Orphan[] }) {
  const reaping = useSignal<Orphan | null>(null);
  if (orphans.error.value) return <ErrorBox problem={orphans.error.value} />;
  const columns: Column<Orphan>[] = [
    {
      key: 'machine',
      head: 'Machine',
      width: '24%',
      cell: (one) => (
        <>
          <Text value={one.machine_id} max={80} brief mono />
          <Copy text={one.machine_id} label="Copy the machine's id" />
        </>
      ),
      value: (one) => one.machine_id,
    },
    { key: 'name', head: 'Name', hide: 'phone', cell: (one) => <Text value={one.name} max={80} brief />, value: (one) => one.name },
    { key: 'place', head: 'Place', hide: 'phone', cell: (one) => <Text value={`${one.provider} ${one.zone ?? one.region}`} max={60} brief />, value: (one) => `${one.provider} ${one.region}` },
    { key: 'type', head: 'Type', hide: 'tablet', cell: (one) => <Text value={one.machine_type} max={60} brief />, value: (one) => one.machine_type },
    { key: 'cost', head: '$/h', end: true, width: '10ch', cell: (one) => (one.cost_per_hour === undefined ? '–' : money(one.cost_per_hour)), value: (one) => one.cost_per_hour },
    { key: 'seen', head: 'Seen for', end: true, width: '11ch', cell: (one) => <Age at={one.first_seen} word={false} />, value: (one) => -Date.parse(one.first_seen) },
    {
      key: 'do',
      head: 'Action',
      end: true,
      width: '120px',
      cell: (one) =>
        one.reap ? (
          <span class="muted" title="Asked for. A machine is left alone for ten minutes after it was first seen.">to be returned</span>
        ) : mayAdminister.value ? (
          <button type="button" class="button button-small button-danger" onClick={() => (reaping.value = one)}>
            Return…
          </button>
        ) : null,
    },
  ];
  return (
    <Section title="Orphans" aside={<span class="muted">machines with our tag that no record knows</span>}>
      <Table
        label="Orphans"
        columns={columns}
        rows={list}
        rowKey={(one) => `${one.provider}/${one.machine_id}`}
        order="-cost"
        empty={<Empty title="There is no orphan">Every provider is listed every two minutes, and everything with our tag is compared with the records.</Empty>}
      />
      {list.length > 0 && (
        <p class="note tone-warn">
          <Glyph name="triangle" />
          <span>
            <strong>What to do:</strong> return a machine that nobody needs, or adopt it into a node pool: <code>argosy instance adopt</code>. Argosy never returns an orphan by itself.
          </span>
        </p>
      )}
      <div class="page-foot">
        <Equivalent cli="argosy instance list --orphans" call={{ path: `${FLEET}/orphans` }} />
      </div>
      {reaping.value && <ReapDialog orphan={reaping.value} onClose={() => (reaping.value = null)} />}
    </Section>
  );
}

function ReapDialog({ orphan, onClose }: { orphan: Orphan; onClose: () => void }) {
  const reason = useSignal('');
  const typed = useSignal('');
  const problem = useSignal<Problem | null>(null);
  const path = `${FLEET}/orphans/${segment(orphan.provider)}/${segment(orphan.machine_id)}/reap`;
  const ready = reason.value.trim() !== '' && typed.value === orphan.machine_id;
  const act = async (event: Event) => {
    event.preventDefault();
    if (!ready) return;
    try {
      await post(path, { reason: reason.value.trim() });
      await orphans.refresh();
      toast('The machine is to be returned.');
      onClose();
    } catch (thrown) {
      problem.value = asProblem(thrown);
    }
  };
  return (
    <Dialog
      title="Return a machine that nobody knows"
      onClose={onClose}
      foot={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form="reap-form" class="button button-danger" disabled={!ready}>
            Return it
          </button>
        </>
      }
    >
      <form id="reap-form" onSubmit={act}>
        <p>
          <Text value={orphan.name || orphan.machine_id} max={80} />, a <Text value={orphan.machine_type} max={60} /> in <Text value={`${orphan.provider} ${orphan.zone ?? orphan.region}`} max={60} />
          {orphan.cost_per_hour !== undefined && `, ${money(orphan.cost_per_hour)} an hour`}. Whatever runs on it is lost. It goes with
          the next listing, but not before it was known for ten minutes: a record may still come for it.
        </p>
        <label>
          Why
          <input type="text" required maxLength={500} value={reason.value} onInput={(event) => (reason.value = event.currentTarget.value)} />
        </label>
        <label>
          Type <strong class="mono">{orphan.machine_id}</strong> to confirm
          <input type="text" autocomplete="off" spellcheck={false} value={typed.value} onInput={(event) => (typed.value = event.currentTarget.value)} />
        </label>
        {problem.value && <ErrorBox problem={problem.value} />}
        <Equivalent call={{ method: 'POST', path, body: { reason: reason.value.trim() || '…' } }} />
      </form>
    </Dialog>
  );
}

function Providers() {
  const list = providers.data.value?.items ?? [];
  if (providers.error.value) return <ErrorBox problem={providers.error.value} />;
  return (
    <Section title="Providers">
      {list
        .filter((one) => one.paused || one.frozen)
        .map((one) => (
          <p key={one.name} class="note tone-bad">
            <Glyph name="bar" />
            <span>
              <strong>
                <Text value={one.name} max={40} /> {one.frozen ? 'is not believed' : 'is left alone'}:
              </strong>{' '}
              <Text value={one.frozen?.message ?? one.paused?.message} max={300} />{' '}
              {one.paused && (
                <>
                  Next try <Age at={one.paused.retry_at} />.
                </>
              )}
              {one.frozen && (
                <>
                  {' '}
                  It lists {one.frozen.found} of {one.frozen.expected} machines. If that is right: <code>{shell('argosy', 'provider', 'thaw', one.name, '--reason', '…')}</code>
                </>
              )}
            </span>
          </p>
        ))}
      <Table
        label="Providers"
        columns={[
          { key: 'name', head: 'Provider', width: '20%', cell: (one) => <a href={href('/instances', { q: `provider = ${text(one.name)}` })}><Text value={one.name} max={40} brief /></a>, value: (one) => one.name },
          { key: 'configured', head: 'Configured', hide: 'phone', cell: (one) => (one.configured ? 'yes' : 'no'), value: (one) => String(one.configured), width: '12ch' },
          { key: 'running', head: 'Running', end: true, cell: (one) => count(one.instances['Running'] ?? 0), value: (one) => one.instances['Running'] ?? 0, width: '10ch' },
          { key: 'other', head: 'Other', end: true, hide: 'phone', cell: (one) => count(Object.entries(one.instances).reduce((sum, [state, n]) => (state === 'Running' || state === 'Terminated' || state === 'Failed' ? sum : sum + n), 0)), width: '9ch' },
          { key: 'orphans', head: 'Orphans', end: true, cell: (one) => count(one.orphans), value: (one) => one.orphans, width: '10ch' },
          { key: 'cost', head: '$/h', end: true, cell: (one) => spend(one.cost_per_hour, one.unpriced), value: (one) => one.cost_per_hour, width: '18ch' },
          { key: 'listed', head: 'Listed', end: true, hide: 'phone', cell: (one) => <Age at={one.listed_at} />, value: (one) => one.listed_at, width: '12ch' },
        ]}
        rows={list}
        rowKey={(one) => one.name}
        order="-cost"
        parameter="providers"
        empty={<Empty title="No provider is configured">Give the server one, or a simulated cloud: <code>argosy up</code></Empty>}
      />
      <div class="page-foot">
        <Equivalent cli="argosy provider list" call={{ path: `${FLEET}/providers` }} />
      </div>
    </Section>
  );
}
