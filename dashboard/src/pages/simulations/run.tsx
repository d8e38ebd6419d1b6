/** One run: what must never be, what was expected, capacity, work, money and faults. */
import { useMemo } from 'preact/hooks';
import { count, money, percent } from '../../lib/format';
import { availability, byCause, padded, seriesAt, type CauseSum, type Checked, type Fault, type Run } from '../../lib/simulation';
import { Badge, Copy, Empty, Meter, Section, Text } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Glyph } from '../../ui/glyph';
import { Plot, type PlotLine } from '../../ui/plot';
import { Table, type Column } from '../../ui/table';
import { span } from './words';

const SYNC = 'simulation';

export function OneRun({ run }: { run: Run }) {
  const at = useMemo(() => seriesAt(run.series), [run]);
  const plots = useMemo(() => {
    const line = (name: string, values: number[], colour: string, more: Partial<PlotLine> = {}): PlotLine => ({ name, values: padded(values, at.length), colour, steps: true, ...more });
    const s = run.series;
    return {
      capacity: [line('wanted', s.wanted, '--text-3', { dashed: true }), line('there', s.present, '--move-fill'), line('in service', s.in_service, '--ok-fill', { area: true })],
      goodput: [line('goodput', s.goodput, '--ok-fill', { area: true, steps: false })],
      cost: [line('cost', s.cost_per_hour, '--held-fill', { area: true })],
      budget: [line('out of service by Argosy', s.disrupted, '--warn-fill', { area: true }), line('allowed', s.budget, '--bad-fill', { dashed: true })],
    };
  }, [run]);
  // Capacity moves by a few percent: an axis that begins at nothing would hide all of it.
  const lowest = useMemo(() => {
    const all = [...run.series.in_service, ...run.series.wanted];
    const low = all.reduce((a, b) => Math.min(a, b), Infinity);
    const high = all.reduce((a, b) => Math.max(a, b), 0);
    return Number.isFinite(low) ? Math.max(0, Math.floor(low - (high - low) * 0.4)) : 0;
  }, [run]);
  const causes = useMemo(() => byCause(run.faults), [run]);
  const served = availability(run.series);
  const goodput = run.work && run.work.possible > 0 ? run.work.useful / run.work.possible : null;
  const broken = run.assertions.filter((one) => !one.holds).length;
  const most = causes[0]?.count ?? 1;
  return (
    <>
      <dl class="numbers">
        <Figure name="Simulated" value={span(run.simulated_seconds)} also={`${count(run.events)} things happened`} />
        <Figure name="Fleet" value={`${count(run.gpus)} GPUs`} also={`${count(run.nodes)} nodes`} />
        <Figure name="GPUs in service" value={served === null ? '–' : `${(served * 100).toFixed(2)} %`} also="of those wanted" />
        <Figure name="Goodput" value={goodput === null ? '–' : `${(goodput * 100).toFixed(2)} %`} also={run.work ? `${count(run.work.interruptions)} interruptions` : 'no workload'} />
        <Figure name="Cost" value={money(run.money.total)} also={`${money(run.money.wasted)} wasted (${percent(run.money.wasted, run.money.total)})`} />
        <Figure name="Faults" value={count(run.faults.length)} also={`${count(run.faults.filter((one) => one.interrupts).length)} interrupted work`} />
      </dl>
      {run.violations.length > 0 && (
        <Section title="What must never be, and was">
          <ul class="cards">
            {run.violations.map((one, i) => (
              <li key={i} class="card card-bad">
                <p>
                  <Glyph name="cross" /> <strong><Text value={one.invariant} max={20} /></strong> <span class="muted">after {span(one.at)}</span>
                </p>
                <p>
                  <Text value={one.message} />
                </p>
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Section title="What was expected" aside={<span class="muted">{run.assertions.length === 0 ? '' : broken === 0 ? `all ${run.assertions.length} hold` : `${broken} of ${run.assertions.length} do not hold`}</span>}>
        <Table label="Assertions" loose columns={ASSERTIONS} rows={run.assertions} rowKey={(one) => one.expected} parameter="assertions" empty={<Empty title="The scenario expects nothing">Add assertions to it to make it a test.</Empty>} />
      </Section>
      <Section title="Over time" aside={<span class="muted">each step is {span(run.series.step_seconds)}</span>}>
        {at.length === 0 ? (
          <Empty title="The report has no series">Replay one seed alone with --json to get them.</Empty>
        ) : (
          <div class="plots">
            <Plot title="GPUs" at={at} lines={plots.capacity} whole format={(value) => count(Math.round(value))} place={span} from={lowest} sync={SYNC} />
            <Plot title="Goodput" at={at} lines={plots.goodput} format={(value) => `${Math.round(value * 100)} %`} place={span} to={1} sync={SYNC} />
            <Plot title="Cost per hour" at={at} lines={plots.cost} format={(value) => `$${count(Math.round(value))}`} place={span} sync={SYNC} />
            <Plot title="Nodes out of service by Argosy, against the budget" at={at} lines={plots.budget} whole format={(value) => count(Math.round(value))} place={span} sync={SYNC} />
          </div>
        )}
      </Section>
      <div class="twins">
        <Section title="Faults by cause">
          <Table label="Faults by cause" columns={causeColumns(most)} rows={causes} rowKey={(one) => one.cause} order="-count" parameter="causes" empty={<Empty title="Nothing went wrong">The scenario causes no faults, or it was too short.</Empty>} />
        </Section>
        <div>
          <Section title="What was done">
            <Table
              label="Actions"
              columns={[
                { key: 'action', head: 'Action', cell: ([name]) => <Text value={name} max={60} brief />, value: ([name]) => name },
                { key: 'count', head: 'Times', end: true, width: '12ch', cell: ([, n]) => count(n), value: ([, n]) => n },
              ]}
              rows={run.actions}
              rowKey={([name]) => name}
              order="-count"
              parameter="actions"
              empty={<Empty title="Nothing was done to a node or a machine" />}
            />
          </Section>
          {run.work && (
            <Section title="Where the work's time went">
              <Lost work={run.work} />
            </Section>
          )}
        </div>
      </div>
      {run.rules.length > 0 && (
        <Section title="Rules">
          <Table
            label="Rules"
            columns={[
              { key: 'rule', head: 'Rule', cell: (one) => <Text value={one.rule} max={80} brief />, value: (one) => one.rule, width: '40%' },
              { key: 'hits', head: 'Hits', end: true, cell: (one) => count(one.hits), value: (one) => one.hits },
              { key: 'nodes', head: 'Nodes', end: true, cell: (one) => count(one.nodes), value: (one) => one.nodes },
              { key: 'replaced', head: 'Replaced', end: true, cell: (one) => count(one.replaced), value: (one) => one.replaced },
            ]}
            rows={run.rules}
            rowKey={(one) => one.rule}
            order="-hits"
            parameter="rules"
          />
        </Section>
      )}
      <p class="muted digest">
        Seed {run.seed}, digest <Text value={run.digest} mono max={80} brief /> <Copy text={run.digest} label="Copy the digest" />
      </p>
      <Equivalent cli={run.replay} label="Replay it, step by step the same" />
      <Section title="Every fault" aside={<span class="muted">seconds after it happened</span>}>
        <Table label="Faults" columns={FAULTS} rows={run.faults} rowKey={(one) => `${one.at} ${one.target} ${one.kind}`} order="at" parameter="faults" empty={<Empty title="There is none" />} />
      </Section>
    </>
  );
}

function Figure({ name, value, also }: { name: string; value: string; also?: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
      {also && <dd class="numbers-also">{also}</dd>}
    </div>
  );
}

function Lost({ work }: { work: NonNullable<Run['work']> }) {
  const parts = [
    { name: 'useful', seconds: work.useful, tone: 'ok' as const },
    { name: 'done again since the last checkpoint', seconds: work.redone, tone: 'bad' as const },
    { name: 'waiting for machines', seconds: work.waited, tone: 'warn' as const },
    { name: 'starting, and writing checkpoints', seconds: work.overhead, tone: 'held' as const },
  ];
  return (
    <Table
      label="Where the work's time went"
      columns={[
        { key: 'name', head: 'GPU time', cell: (one) => one.name, value: (one) => one.name },
        { key: 'hours', head: 'GPU hours', end: true, width: '14ch', cell: (one) => count(Math.round(one.seconds / 3600)), value: (one) => one.seconds },
        { key: 'part', head: 'Of all', end: true, width: '9ch', cell: (one) => percent(one.seconds, work.possible), value: (one) => one.seconds },
        { key: 'bar', head: 'Share', hide: 'tablet', width: '20%', cell: (one) => <Meter part={one.seconds} whole={work.possible} tone={one.tone} label={percent(one.seconds, work.possible)} /> },
      ]}
      rows={parts}
      rowKey={(one) => one.name}
      parameter="work"
    />
  );
}

const ASSERTIONS: Column<Checked>[] = [
  { key: 'holds', head: 'Result', width: '110px', cell: (one) => <Badge look={one.holds ? { word: 'Holds', tone: 'ok', glyph: 'check', means: '' } : { word: 'Does not', tone: 'bad', glyph: 'cross', means: '' }} />, value: (one) => String(one.holds) },
  { key: 'expected', head: 'Expected', cell: (one) => <Text value={one.expected} max={300} /> },
  { key: 'found', head: 'Found', width: '24%', cell: (one) => <Text value={one.found.replace(/ %/g, '\u00a0%')} max={300} /> },
];

function causeColumns(most: number): Column<CauseSum>[] {
  return [
    { key: 'cause', head: 'Cause', cell: (one) => <Text value={one.cause} max={60} brief />, value: (one) => one.cause, width: '34%' },
    { key: 'count', head: 'Faults', end: true, width: '9ch', cell: (one) => count(one.count), value: (one) => one.count },
    { key: 'interrupting', head: 'Interrupting', end: true, hide: 'phone', width: '13ch', cell: (one) => count(one.interrupting), value: (one) => one.interrupting },
    { key: 'detected', head: 'Known after', end: true, hide: 'phone', width: '13ch', cell: (one) => span(one.detected), value: (one) => one.detected },
    { key: 'repaired', head: 'Repaired', end: true, width: '11ch', cell: (one) => span(one.repaired), value: (one) => one.repaired },
    { key: 'bar', head: 'Share', hide: 'tablet', cell: (one) => <Meter part={one.count} whole={most} tone="warn" label={`${one.count} faults`} /> },
  ];
}

const FAULTS: Column<Fault>[] = [
  { key: 'at', head: 'After', end: true, width: '12ch', cell: (one) => span(one.at), value: (one) => one.at },
  { key: 'target', head: 'What', width: '22%', cell: (one) => <Text value={one.target} max={80} brief mono />, value: (one) => one.target },
  { key: 'kind', head: 'How', width: '14%', cell: (one) => <Text value={one.kind} max={40} brief mono />, value: (one) => one.kind },
  { key: 'cause', head: 'Cause', hide: 'phone', cell: (one) => <Text value={one.cause} max={60} brief />, value: (one) => one.cause },
  { key: 'detected', head: 'Known', end: true, width: '10ch', cell: (one) => span(one.detected_after), value: (one) => one.detected_after },
  { key: 'cordoned', head: 'Cordoned', end: true, hide: 'phone', width: '11ch', cell: (one) => span(one.cordoned_after), value: (one) => one.cordoned_after },
  { key: 'repaired', head: 'Repaired', end: true, width: '11ch', cell: (one) => span(one.repaired_after), value: (one) => one.repaired_after },
];
