/** What a policy would have done with recorded history, beside the one in force: node by node. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { asProblem, FLEET, post, type Problem } from '../../lib/api';
import { same } from '../../lib/change';
import { count, plural } from '../../lib/format';
import { nodeChanges, type NodeChange } from '../../lib/policy';
import { href, segment } from '../../lib/router';
import { lookOf, SEVERITY } from '../../lib/states';
import type { BacktestReport, PolicyPut } from '../../lib/types';
import { Age, Badge, Clock, ErrorBox, Text } from '../../ui/basics';
import { Glyph } from '../../ui/glyph';
import { Table, type Column } from '../../ui/table';
import { Segments } from '../../ui/tabs';

type Since = '1h' | '24h' | '7d' | 'all';
const HOURS: Record<Since, number | null> = { '1h': 1, '24h': 24, '7d': 168, all: null };

const KIND = {
  hit: { word: 'newly hit', tone: 'bad', glyph: 'cross' },
  spared: { word: 'spared', tone: 'ok', glyph: 'check' },
  other: { word: 'otherwise', tone: 'warn', glyph: 'triangle' },
} as const;

export function Backtest({ policy }: { policy: PolicyPut | null }) {
  const since = useSignal<Since>('24h');
  const busy = useSignal(false);
  const problem = useSignal<Problem | null>(null);
  const done = useSignal<{ report: BacktestReport; policy: PolicyPut; since: Since } | null>(null);
  const run = async () => {
    if (!policy) return;
    busy.value = true;
    problem.value = null;
    try {
      const hours = HOURS[since.value];
      const report = await post<BacktestReport>(`${FLEET}/policies/backtest`, {
        policy,
        ...(hours === null ? {} : { since: new Date(Date.now() - hours * 3_600_000).toISOString() }),
      });
      done.value = { report, policy, since: since.value };
    } catch (thrown) {
      problem.value = asProblem(thrown);
    } finally {
      busy.value = false;
    }
  };
  const report = done.value?.report;
  const stale = done.value !== null && (!policy || !same(done.value.policy, policy) || done.value.since !== since.value);
  const changes = useMemo(() => (report ? nodeChanges(report) : []), [report]);
  const hit = changes.filter((one) => one.kind === 'hit').length;
  const spared = changes.filter((one) => one.kind === 'spared').length;
  return (
    <div class="backtest panel">
      <div class="panel-head">
        <h2>Try it on the past</h2>
        <span class="section-aside">
          <Segments
            label="How far back"
            value={since.value}
            options={[
              ['1h', '1 h'],
              ['24h', '24 h'],
              ['7d', '7 d'],
              ['all', 'All'],
            ]}
            onChange={(value) => (since.value = value)}
          />
          <button type="button" class="button button-small" disabled={!policy || busy.value} onClick={() => void run()}>
            {busy.value ? 'Running…' : 'Backtest'}
          </button>
        </span>
      </div>
      {problem.value && <ErrorBox problem={problem.value} />}
      {!report && !problem.value && <p class="panel-none">Runs over the events that are kept, beside the policy in force. Nothing is written.</p>}
      {report && (
        <div class={stale ? 'backtest-stale' : ''}>
          <p class="panel-none" role="status">
            {stale && <strong>Of an earlier text. Run it again. </strong>}
            {report.events === 0 ? (
              'No event is kept from that time, so there is nothing to compare.'
            ) : (
              <>
                Of {plural(report.events, 'event')}
                {report.from && report.to && (
                  <>
                    {' '}
                    (<Clock at={report.from} /> to <Clock at={report.to} />)
                  </>
                )}{' '}
                {count(report.both)} are hits of both. <strong>{changes.length === 0 ? 'No node would have been treated otherwise.' : `${plural(hit, 'node')} would newly have been hit, ${count(spared)} spared, ${count(changes.length - hit - spared)} treated otherwise.`}</strong>
              </>
            )}
          </p>
          {(report.errors ?? []).map((error) => (
            <p key={error.message} class="note tone-bad">
              <Glyph name="cross" />
              <span>
                <Text value={error.message} max={300} /> ({plural(error.count, 'event')})
              </span>
            </p>
          ))}
          {changes.length > 0 && <Table label="Nodes that would be treated otherwise" columns={COLUMNS} rows={changes} rowKey={(one) => one.node} loose parameter="changes" />}
        </div>
      )}
    </div>
  );
}

const COLUMNS: Column<NodeChange>[] = [
  { key: 'kind', head: 'Change', width: '110px', cell: (one) => <Badge look={{ ...KIND[one.kind], means: '' }} quiet />, value: (one) => one.kind },
  { key: 'node', head: 'Node', cell: (one) => <a href={href(`/nodes/${segment(one.node)}`)}><Text value={one.node} max={80} mono /></a>, value: (one) => one.node },
  { key: 'worst', head: 'As', width: '122px', cell: (one) => <Badge look={lookOf(SEVERITY, one.worst)} quiet />, value: (one) => one.worst },
  { key: 'rules', head: 'Rules', hide: 'phone', cell: (one) => <><Text value={one.now.join(', ') || 'none'} max={120} /> → <Text value={one.then.join(', ') || 'none'} max={120} /></> },
  { key: 'events', head: 'Events', end: true, width: '78px', cell: (one) => count(one.events), value: (one) => one.events },
  { key: 'last', head: 'Last', end: true, width: '88px', hide: 'phone', cell: (one) => <Age at={one.last} word={false} />, value: (one) => one.last },
];
