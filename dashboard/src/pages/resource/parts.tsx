/** The parts that the pages of a cluster and of a node pool have in common. */
import { useSignal } from '@preact/signals';
import { Fragment, type ComponentChildren } from 'preact';
import { now } from '../../lib/connection';
import { count, duration, plural, time } from '../../lib/format';
import { blockers, conditionTone, flat, generationsOf, lanesOf, type Generation } from '../../lib/resource';
import { query, setQuery } from '../../lib/router';
import { ADAPTER_PHASE, lookOf, TRI } from '../../lib/states';
import type { Condition, Resource } from '../../lib/types';
import { Age, Badge, Clock, Empty, ErrorBox, Section, Spinner, Text } from '../../ui/basics';
import { Glyph } from '../../ui/glyph';
import { SwimLanes } from '../../ui/lanes';
import { Table, type Column } from '../../ui/table';
import { Segments } from '../../ui/tabs';
import type { Reports } from './reports';

/** Who keeps it from being ready, why, and what to do; nothing where it is. */
export function Blocking({ resource, reports, cli }: { resource: Resource; reports: Reports; cli?: ComponentChildren }) {
  const found = blockers(reports.statuses.value);
  const first = found[0];
  if (!first || resource.status.phase === 'Ready') return null;
  const failed = first.phase === 'Failed';
  const tone = failed ? 'bad' : first.phase === 'Running' ? 'move' : 'idle';
  const waits = found.slice(1);
  return (
    <section class={`blocking tone-${tone}`} aria-label="What it waits for">
      <p class="blocking-head">
        <Glyph name={lookOf(ADAPTER_PHASE, first.phase).glyph} />
        <strong>
          <Text value={first.adapter} max={60} />
        </strong>{' '}
        {failed ? 'blocks it' : first.phase === 'Running' ? 'is at work' : 'has not begun'}
        {first.reason && <Text value={first.reason} mono max={80} />}
        <span class="muted">
          <Age at={first.since} />
        </span>
      </p>
      <p>
        <Text value={first.message} />
      </p>
      {first.guidance && (
        <p>
          <strong>What to do:</strong> <Text value={first.guidance} />
        </p>
      )}
      {first.retryAt && (
        <p class="muted">
          Tried again <Age at={first.retryAt} />, by itself.
        </p>
      )}
      {waits.length > 0 && (
        <p class="muted">
          Then {waits.length === 1 ? 'waits' : 'wait'}: <Text value={waits.map((one) => one.adapter).join(', ')} max={200} />
        </p>
      )}
      {cli}
    </section>
  );
}

/** Desired and observed, side by side. */
export function DesiredObserved({ resource, reports, observed }: { resource: Resource; reports: Reports; observed?: ComponentChildren }) {
  const list = reports.statuses.value;
  const lines = list?.statuses ?? [];
  const done = lines.filter((line) => line.phase === 'Complete').length;
  const behind = (list?.items ?? []).filter((report) => report.observed_generation < resource.generation);
  return (
    <div class="twins">
      <section class="panel" aria-label="Desired">
        <div class="panel-head">
          <h2>Desired</h2>
          <span class="muted">
            generation {count(resource.generation)}, <Age at={resource.updated_time} /> by <Text value={resource.updated_by} max={40} brief />
          </span>
        </div>
        <Rows rows={flat(resource.spec)} none="The spec is empty: the defaults hold." />
        {resource.labels && Object.keys(resource.labels).length > 0 && (
          <p class="panel-chips">
            {Object.entries(resource.labels).map(([key, value]) => (
              <span key={key} class="chip mono">
                <Text value={`${key}=${value}`} max={130} brief />
              </span>
            ))}
          </p>
        )}
      </section>
      <section class="panel" aria-label="Observed">
        <div class="panel-head">
          <h2>Observed</h2>
          <span class="muted live">
            {lines.length > 0 && `${done} of ${plural(lines.length, 'adapter')} done`}
            {behind.length > 0 && `, ${behind.length} still at an older generation`}
          </span>
        </div>
        {observed}
        {(list?.items ?? []).map((report) => {
          // What people are told to do stands on top of the page.
          const { guidance: _, retryAt: __, ...data } = report.data;
          return <Rows key={report.adapter} title={report.adapter} rows={flat(data)} />;
        })}
        {lines.length > 0 && (list?.items ?? []).length === 0 && <p class="panel-none">No adapter has reported yet.</p>}
      </section>
    </div>
  );
}

/** More are in the YAML; a page is for people. */
const ROWS_MAX = 24;

export function Rows({ rows, title, none }: { rows: readonly { name: string; value: ComponentChildren }[]; title?: string; none?: string }) {
  if (rows.length === 0) return none ? <p class="panel-none">{none}</p> : null;
  return (
    <div class="rows">
      {title && (
        <p class="rows-title">
          <Text value={title} max={60} />
        </p>
      )}
      <dl>
        {rows.slice(0, ROWS_MAX).map((row) => (
          <div key={row.name}>
            <dt>
              {row.name.split('.').map((part, i) => (
                <Fragment key={i}>
                  {i > 0 && (
                    <>
                      .<wbr />
                    </>
                  )}
                  <Text value={part} max={80} brief />
                </Fragment>
              ))}
            </dt>
            <dd>{typeof row.value === 'string' ? <Text value={row.value} max={160} /> : row.value}</dd>
          </div>
        ))}
      </dl>
      {rows.length > ROWS_MAX && <p class="rows-title">and {rows.length - ROWS_MAX} more, in the YAML</p>}
    </div>
  );
}

export function AdapterLanes({ resource, reports }: { resource: Resource; reports: Reports }) {
  const all = query.value.get('lanes') === 'all';
  const history = reports.history.value;
  const several = new Set(history.map((entry) => entry.generation)).size > 1;
  const lanes = lanesOf(history, reports.statuses.value?.statuses ?? [], now.value, all ? null : resource.generation);
  return (
    <Section
      title="Adapters over time"
      aside={
        several && (
          <Segments
            label="Which generations"
            value={all ? 'all' : 'now'}
            options={[
              ['now', `Generation ${resource.generation}`],
              ['all', 'All'],
            ]}
            onChange={(value) => setQuery({ lanes: value === 'all' ? 'all' : null })}
          />
        )
      }
    >
      {reports.problem.value && <ErrorBox problem={reports.problem.value} />}
      {lanes.lanes.length > 0 ? (
        <SwimLanes lanes={lanes} />
      ) : reports.statuses.value ? (
        <Empty title="No adapter has reported yet">The first report usually comes within a second.</Empty>
      ) : (
        !reports.problem.value && <Spinner what="Reading the reports" />
      )}
    </Section>
  );
}

const CONDITIONS: Column<Condition>[] = [
  {
    key: 'type',
    head: 'Condition',
    width: '22%',
    cell: (row) => <Text value={row.type} max={80} />,
    value: (row) => row.type,
  },
  { key: 'status', head: 'Status', width: '11ch', cell: (row) => <Badge look={{ ...lookOf(TRI, row.status), tone: conditionTone(row), glyph: conditionTone(row) === 'ok' ? 'check' : conditionTone(row) === 'warn' ? 'triangle' : lookOf(TRI, row.status).glyph }} />, value: (row) => row.status },
  { key: 'reason', head: 'Reason', hide: 'phone', cell: (row) => <Text value={row.reason} mono max={80} />, value: (row) => row.reason, width: '20%' },
  { key: 'message', head: 'Message', cell: (row) => <Text value={row.message} max={300} /> },
  { key: 'gen', head: 'Gen', end: true, hide: 'tablet', width: '6ch', cell: (row) => row.observed_generation, value: (row) => row.observed_generation },
  { key: 'age', head: 'Since', end: true, width: '11ch', cell: (row) => <Age at={row.last_transition_time} word={false} focusable />, value: (row) => -Date.parse(row.last_transition_time) },
];

export function Conditions({ resource }: { resource: Resource }) {
  return (
    <Section title="Conditions">
      <Table label="Conditions" loose columns={CONDITIONS} rows={resource.status.conditions} rowKey={(row) => row.type} parameter="conditions" />
    </Section>
  );
}

/** What happened, generation by generation. */
export function History({ reports }: { reports: Reports }) {
  const generations = generationsOf(reports.history.value);
  if (reports.problem.value) return <ErrorBox problem={reports.problem.value} />;
  if (generations.length === 0) return <Empty title="No adapter has reported yet">Reports are kept here, by generation: each change of the spec begins one.</Empty>;
  return (
    <>
      {generations.map((one, i) => (
        <OneGeneration key={one.generation} generation={one} first={i === 0} />
      ))}
      {reports.older.value !== null && (
        <button type="button" class="button" onClick={() => void reports.loadOlder()}>
          Load older reports
        </button>
      )}
    </>
  );
}

function OneGeneration({ generation, first }: { generation: Generation; first: boolean }) {
  const open = useSignal(first);
  const took = generation.done ? (time(generation.done) ?? 0) - (time(generation.from) ?? 0) : null;
  return (
    <details class="generation panel" open={open.value} onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary>
        <strong>Generation {generation.generation}</strong>
        <span class="muted">
          <Age at={generation.from} />, {plural(generation.entries.length, 'report')}, {took === null ? 'not finished' : `done in ${duration(took)}`}
        </span>
        <span class="generation-adapters">
          {generation.adapters.map((one) => (
            <Badge key={one.adapter} look={{ ...lookOf(ADAPTER_PHASE, one.phase), word: one.adapter }} title={`${lookOf(ADAPTER_PHASE, one.phase).word}, ${plural(one.reports, 'report')}`} quiet />
          ))}
        </span>
      </summary>
      {open.value && (
        <ol class="reports">
          {generation.entries.map((entry) => {
            const lane = lanesOf([entry], [], 0, null).lanes[0]?.bars[0];
            return (
              <li key={entry.sequence}>
                <Clock at={entry.at} />
                <span>
                  <Text value={entry.report.adapter} max={40} />
                </span>
                <Badge look={lookOf(ADAPTER_PHASE, lane?.phase)} quiet />
                <span class="reports-said">
                  {lane?.reason && <Text value={lane.reason} mono max={60} />} <Text value={lane?.message} max={240} />
                  {entry.discarded && (
                    <em class="muted">
                      {' '}
                      Not counted: <Text value={entry.discarded} max={120} />
                    </em>
                  )}
                </span>
              </li>
            );
          })}
        </ol>
      )}
    </details>
  );
}
