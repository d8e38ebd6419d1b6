/** One node pool: size asked and had, who blocks it, its machines, and the plan behind them. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { asProblem, FLEET, post, type Problem } from '../../lib/api';
import { shell } from '../../lib/command';
import { clusterNamed, clusterNames } from '../../lib/declared';
import { count, money, spend } from '../../lib/format';
import { costs } from '../../lib/money';
import { Live, Polled, useLive } from '../../lib/live';
import { specNumber } from '../../lib/resource';
import { href, segment } from '../../lib/router';
import { text } from '../../lib/search';
import { mayAct } from '../../lib/session';
import { INSTANCE, lookOf, PHASE } from '../../lib/states';
import { safety } from '../../lib/stores';
import type { Instance, PoolExplanation, Resource } from '../../lib/types';
import type { PageProps } from '../../routes';
import { Age, Badge, Copy, Empty, ErrorBox, PageHead, Section, Spinner, Text } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Dialog } from '../../ui/dialog';
import { Glyph } from '../../ui/glyph';
import { usePaletteActions } from '../../ui/palette';
import { PauseDialog, ResumeDialog } from '../../ui/strip';
import { Table, type Column } from '../../ui/table';
import { tabOf, Tabs } from '../../ui/tabs';
import { toast } from '../../ui/toast';
import { Missing } from '../clusters/cluster';
import { poolPlace, YamlTab } from '../resource/edit';
import { AdapterLanes, Blocking, Conditions, DesiredObserved, History, Rows } from '../resource/parts';
import { useReports } from '../resource/reports';
import { DeleteDialog } from '../resource/remove';
import { ResizeDialog } from './resize';

type Asked = 'resize' | 'delete' | 'pause' | 'resume' | 'buy' | null;

export default function PoolPage({ params }: PageProps) {
  useLive(clusterNames);
  // Machines and pauses know the pool by the name of its cluster.
  const cluster = clusterNamed(params['cluster'] ?? '');
  const name = params['pool'] ?? '';
  const full = `${cluster}.${name}`;
  const place = poolPlace(cluster, name);
  const store = useLive(useMemo(() => new Live<Resource>(place.path, {}, (pool) => pool.uid), [full]));
  const machines = useLive(useMemo(() => new Live<Instance>(`${FLEET}/instances`, { search: `open = true and pool = ${text(full)}` }), [full]));
  const plan = useLive(useMemo(() => new Polled<PoolExplanation>(`${FLEET}/nodepools/${segment(name)}/explain`, 5_000, { cluster }), [full]));
  void store.version.value;
  const pool = [...store.items.values()][0];
  const reports = useReports(place.path, pool?.revision);
  const asked = useSignal<Asked>(null);
  const list = useMemo(() => [...machines.items.values()], [machines, machines.version.value]);
  const paused = safety.data.value?.pauses.some((pause) => pause.pool === full) ?? false;
  const changeable = pool !== undefined && pool.deleted_time === undefined;
  usePaletteActions(
    changeable
      ? [
          { kind: 'Action', name: `Resize ${full}…`, icon: 'pool', act: () => (asked.value = 'resize'), changes: true },
          { kind: 'Action', name: `Delete the node pool ${full}…`, icon: 'close', act: () => (asked.value = 'delete'), changes: true },
          paused
            ? { kind: 'Action', name: `Resume automatic action in ${full}…`, icon: 'play', act: () => (asked.value = 'resume'), changes: true }
            : { kind: 'Action', name: `Pause automatic action in ${full}…`, icon: 'pause', act: () => (asked.value = 'pause'), changes: true },
        ]
      : [],
    [full, changeable, paused],
  );

  if (!pool) {
    if (store.error.value) return <Missing name={full} what="node pool" problem={store.error.value} />;
    if (store.ready.value)
      return (
        <Empty title={`The node pool ${name} is deleted`}>
          Its machines are returned. <a href={href(`/clusters/${segment(cluster)}`)}>The cluster {cluster}</a>
        </Empty>
      );
    return <Spinner what="Reading the node pool" />;
  }
  const tabs = [
    { key: 'now', name: 'Overview' },
    { key: 'machines', name: 'Machines', count: list.length },
    { key: 'plan', name: 'Plan' },
    { key: 'history', name: 'History' },
    { key: 'yaml', name: 'YAML' },
  ];
  const tab = tabOf(tabs);
  const close = () => (asked.value = null);
  const running = list.filter((one) => one.state === 'Running').length;
  const { cost, unpriced } = costs(list);
  const explained = plan.data.value;

  return (
    <>
      <PageHead
        kicker={
          <>
            <a href={href('/clusters')}>Clusters</a> / <a href={href(`/clusters/${segment(cluster)}`)}><Text value={cluster} max={63} /></a> / Node pools
          </>
        }
        title={
          <>
            <Text value={pool.name} max={63} />
            <Copy text={full} label="Copy the name that nodes carry" />
          </>
        }
        state={
          <>
            <Badge look={lookOf(PHASE, pool.status.phase)} />
            {paused && <Badge look={{ word: 'Paused', tone: 'held', glyph: 'bar', means: 'Automatic action is paused in this pool.' }} />}
          </>
        }
        actions={
          mayAct.value &&
          changeable && (
            <>
              <button type="button" class="button" onClick={() => (asked.value = paused ? 'resume' : 'pause')}>
                {paused ? 'Resume…' : 'Pause…'}
              </button>
              <button type="button" class="button" onClick={() => (asked.value = 'resize')}>
                Resize…
              </button>
              <button type="button" class="button button-danger" onClick={() => (asked.value = 'delete')}>
                Delete…
              </button>
            </>
          )
        }
      />
      {explained?.paused && (
        <section class="blocking tone-bad" aria-label="Buying is paused">
          <p class="blocking-head">
            <Glyph name="bar" /> <strong>Buying is paused</strong> <Text value={explained.paused.reason} mono max={80} />
            <span class="muted">
              <Age at={explained.paused.since} />
            </span>
          </p>
          <p>
            <Text value={explained.paused.message} />
          </p>
          {mayAct.value && (
            <p>
              <button type="button" class="button button-small" onClick={() => (asked.value = 'buy')}>
                Let buying go on…
              </button>
            </p>
          )}
        </section>
      )}
      <Blocking resource={pool} reports={reports} />
      <Tabs tabs={tabs} label="Parts of this page" />
      {tab === 'now' && (
        <>
          <DesiredObserved
            resource={pool}
            reports={reports}
            observed={
              <Rows
                rows={[
                  { name: 'nodes', value: <span class="live"><strong>{count(running)}</strong> of {count(specNumber(pool, 'nodeCount') ?? 1)} running{list.length > running && `, ${list.length - running} on their way in or out`}</span> },
                  { name: 'cost', value: <span class="live num">{spend(cost, unpriced)} an hour</span> },
                ]}
              />
            }
          />
          <AdapterLanes resource={pool} reports={reports} />
          <Conditions resource={pool} />
          <Equivalent cli={shell('argosy', 'why', `nodepool/${cluster}/${name}`)} call={{ path: `${place.path}/statuses` }} />
        </>
      )}
      {tab === 'machines' && (
        <Section
          title="Machines"
          aside={
            <a href={href('/nodes', { q: `pool = ${text(full)}` })}>
              Their nodes
            </a>
          }
        >
          <Table
            label="Machines of this pool"
            columns={MACHINES}
            rows={list}
            rowKey={(one) => one.id}
            link={(one) => href(`/instances/${segment(one.id)}`)}
            order="id"
            empty={<Empty title="No machine is bought for this pool">The plan says what it waits for.</Empty>}
          />
          <div class="page-foot">
            <Equivalent cli={shell('argosy', 'instance', 'list', '--pool', full, '--open')} call={{ path: `${FLEET}/instances`, query: { search: `open = true and pool = ${text(full)}` } }} />
          </div>
        </Section>
      )}
      {tab === 'plan' && (explained ? <Plan plan={explained} /> : plan.error.value ? <ErrorBox problem={plan.error.value} /> : <Spinner what="Reading the plan" />)}
      {tab === 'plan' && (
        <div class="page-foot">
          <Equivalent cli={shell('argosy', 'nodepool', 'explain', `${cluster}/${name}`)} call={{ path: `${FLEET}/nodepools/${segment(name)}/explain`, query: { cluster } }} />
        </div>
      )}
      {tab === 'history' && (
        <>
          <History reports={reports} />
          <div class="page-foot">
            <Equivalent cli={shell('argosy', 'nodepool', 'statuses', `${cluster}/${name}`)} call={{ path: `${place.path}/statuses/history` }} />
          </div>
        </>
      )}
      {tab === 'yaml' && <YamlTab resource={pool} place={place} onApplied={(now) => store.put(now)} />}
      {asked.value === 'resize' && <ResizeDialog pool={pool} place={place} instances={list} onClose={close} onDone={(now) => store.put(now)} />}
      {asked.value === 'delete' && <DeleteDialog resource={pool} place={place} pools={[]} instances={list} onClose={close} />}
      {asked.value === 'pause' && <PauseDialog pool={full} onClose={close} />}
      {asked.value === 'resume' && <ResumeDialog pool={full} onClose={close} />}
      {asked.value === 'buy' && <BuyDialog cluster={cluster} name={name} onClose={close} onDone={() => void plan.refresh()} />}
    </>
  );
}

const MACHINES: Column<Instance>[] = [
  { key: 'id', head: 'Instance', width: '20%', cell: (one) => <Text value={one.id} max={80} brief mono />, value: (one) => one.id },
  { key: 'state', head: 'State', width: '142px', cell: (one) => <Badge look={lookOf(INSTANCE, one.state)} />, value: (one) => one.state },
  { key: 'node', head: 'Node', hide: 'phone', width: '18%', cell: (one) => (one.node_id ? <a href={href(`/nodes/${segment(one.node_id)}`)}><Text value={one.node_id} max={80} brief mono /></a> : <span class="muted">–</span>), value: (one) => one.node_id },
  { key: 'place', head: 'Place', hide: 'tablet', width: '16%', cell: (one) => <Text value={`${one.provider} ${one.zone ?? one.region}`} max={60} brief />, value: (one) => `${one.provider} ${one.zone ?? one.region}` },
  { key: 'type', head: 'Type', hide: 'tablet', width: '13%', cell: (one) => <Text value={`${one.machine_type}${one.spot ? ' spot' : ''}`} max={60} brief />, value: (one) => one.machine_type },
  { key: 'cost', head: '$/h', end: true, width: '10ch', cell: (one) => (one.cost_per_hour === undefined ? '–' : money(one.cost_per_hour)), value: (one) => one.cost_per_hour },
  { key: 'age', head: 'Age', end: true, width: '92px', cell: (one) => <Age at={one.ordered_at} word={false} />, value: (one) => -Date.parse(one.ordered_at) },
  { key: 'why', head: 'Why', hide: 'phone', cell: (one) => <span class="muted"><Text value={one.reason ?? one.why} max={160} brief /></span>, value: (one) => one.why },
];

/** Why it has the size it has, and what is next. */
function Plan({ plan }: { plan: PoolExplanation }) {
  return (
    <>
      <p class="lead">
        <Text value={plan.summary} />
      </p>
      <div class="twins">
        <section class="panel" aria-label="Size">
          <div class="panel-head">
            <h2>Size</h2>
            <span class="muted">
              <Age at={plan.at} />
            </span>
          </div>
          <Rows
            rows={[
              { name: 'asked by people', value: String(plan.asked) },
              ...(plan.target === undefined ? [] : [{ name: 'target', value: String(plan.target) }]),
              ...Object.entries(plan.instances).map(([state, n]) => ({ name: state, value: String(n) })),
              { name: 'cost', value: `${spend(plan.cost_per_hour, plan.unpriced)} an hour${plan.orphans ? `, with ${count(plan.orphans)} orphaned` : ''}` },
              ...(plan.stale_in_a_row > 0 ? [{ name: 'never registered, in a row', value: String(plan.stale_in_a_row) }] : []),
            ]}
          />
        </section>
        <section class="panel" aria-label="Autoscaler">
          <div class="panel-head">
            <h2>Autoscaler</h2>
            {plan.advice && <Text value={plan.advice.policy} mono max={60} />}
          </div>
          {plan.advice ? (
            <>
              <p class="panel-none">
                <Text value={plan.advice.sentence} />
              </p>
              <Rows rows={[{ name: 'wants', value: `${plan.advice.wanted}, from ${plan.advice.from}` }, { name: 'becomes', value: String(plan.advice.target) }, ...(plan.advice.next ? [{ name: 'looks again', value: <Age at={plan.advice.next} /> }] : [])]} />
              <Rows title="parts" rows={(plan.advice.parts ?? []).map((part) => ({ name: part.policy, value: `${part.target ?? '–'}: ${part.reason}` }))} />
            </>
          ) : (
            <p class="panel-none">None: the size is what people ask for. Give the spec <code>autoscaling</code> to have it follow the work.</p>
          )}
        </section>
      </div>
      {plan.places && plan.places.length > 0 && (
        <Section title="Places that failed" aside={<span class="muted">left alone for a while, never for good</span>}>
          <Table
            label="Places that failed"
            loose
            columns={[
              { key: 'place', head: 'Place', cell: (one) => <Text value={one.place} mono max={120} />, value: (one) => one.place, width: '30%' },
              { key: 'failures', head: 'Failures', end: true, width: '10ch', cell: (one) => count(one.failures), value: (one) => one.failures },
              { key: 'until', head: 'Next try', end: true, width: '12ch', cell: (one) => <Age at={one.until} />, value: (one) => one.until },
              { key: 'message', head: 'What it said', cell: (one) => <Text value={one.message} max={300} /> },
            ]}
            rows={plan.places}
            rowKey={(one) => one.place}
            parameter="places"
          />
        </Section>
      )}
      {plan.decisions && plan.decisions.length > 0 && (
        <Section title="Sizes it had">
          <ol class="reports">
            {plan.decisions.map((one) => (
              <li key={one.at}>
                <Age at={one.at} />
                <span class="num">
                  {one.from} → {one.to}
                </span>
                <span />
                <span class="reports-said">
                  <Text value={one.reason} max={240} />
                </span>
              </li>
            ))}
          </ol>
        </Section>
      )}
    </>
  );
}

function BuyDialog({ cluster, name, onClose, onDone }: { cluster: string; name: string; onClose: () => void; onDone: () => void }) {
  const reason = useSignal('');
  const problem = useSignal<Problem | null>(null);
  const path = `${FLEET}/nodepools/${segment(name)}/resume`;
  const act = async (event: Event) => {
    event.preventDefault();
    try {
      await post(path, { reason: reason.value.trim() }, { query: { cluster } });
      toast('Buying goes on.');
      onDone();
      onClose();
    } catch (thrown) {
      problem.value = asProblem(thrown);
    }
  };
  return (
    <Dialog
      title={`Let buying go on for ${name}`}
      onClose={onClose}
      foot={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form="buy-form" class="button button-primary" disabled={reason.value.trim() === ''}>
            Go on
          </button>
        </>
      }
    >
      <form id="buy-form" onSubmit={act}>
        <p>Machines were bought and none of them registered. Look at the console of one of them before you go on: each try costs money.</p>
        <label>
          Why it will work now
          <input type="text" required maxLength={500} value={reason.value} onInput={(event) => (reason.value = event.currentTarget.value)} />
        </label>
        {problem.value && <ErrorBox problem={problem.value} />}
        <Equivalent cli={shell('argosy', 'nodepool', 'resume', name, '-c', cluster, '--reason', reason.value.trim() || '…')} call={{ method: 'POST', path, query: { cluster }, body: { reason: reason.value.trim() || '…' } }} />
      </form>
    </Dialog>
  );
}
