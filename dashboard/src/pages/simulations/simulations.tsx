/** The report of a simulation, from a file on this computer. It is read here and sent nowhere. */
import { signal, useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import type { Problem } from '../../lib/api';
import { count, plural } from '../../lib/format';
import { FILE_BYTES_MAX, readReport, type Report } from '../../lib/simulation';
import { Badge, ErrorBox, PageHead, Section, Text } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Icon } from '../../ui/glyph';
import { usePaletteActions } from '../../ui/palette';
import { Table } from '../../ui/table';
import { OneRun } from './run';
import { span, VERDICT } from './words';

/** Stays while the tab is open, so that looking at another page does not lose it. */
const opened = signal<{ name: string; report: Report } | null>(null);

export default function Simulations() {
  const problem = useSignal<Problem | null>(null);
  const over = useSignal(false);
  const input = useRef<HTMLInputElement>(null);
  const read = async (file: File | undefined | null) => {
    if (!file) return;
    problem.value = null;
    try {
      if (file.size > FILE_BYTES_MAX) throw new Error(`It has ${count(Math.round(file.size / 1e6))} MB; a page can read at most ${Math.round(FILE_BYTES_MAX / 1e6)}.`);
      opened.value = { name: file.name, report: readReport(await file.text()) };
    } catch (thrown) {
      problem.value = { title: `${file.name.slice(0, 80)} cannot be shown`, status: 0, detail: thrown instanceof Error ? thrown.message : String(thrown), hint: 'Choose the file that `argosy sim run NAME --json FILE` wrote.' };
    }
  };
  usePaletteActions([{ kind: 'Action', name: 'Open a simulation report…', icon: 'simulation', act: () => input.current?.click() }], []);
  const report = opened.value?.report;
  return (
    <>
      <PageHead
        title={report ? <Text value={report.kind === 'run' ? report.run.scenario : report.scenario} max={80} /> : 'Simulations'}
        kicker={report ? <>Simulations / <Text value={opened.value?.name} max={80} /></> : 'What would this fleet do? Days of it, in seconds'}
        state={report?.kind === 'run' && <Badge look={report.run.passed ? VERDICT.passed : VERDICT.failed} />}
        actions={
          <>
            {report && (
              <button type="button" class="button" onClick={() => (opened.value = null)}>
                Close
              </button>
            )}
            <button type="button" class={`button${report ? '' : ' button-primary'}`} onClick={() => input.current?.click()}>
              <Icon name="out" /> Open a report
            </button>
          </>
        }
      />
      <label class="visually-hidden">
        Report of a simulation
        <input
          ref={input}
          type="file"
          accept=".json,application/json"
          tabIndex={-1}
          onChange={(event) => {
            void read(event.currentTarget.files?.[0]);
            event.currentTarget.value = '';
          }}
        />
      </label>
      {problem.value && <ErrorBox problem={problem.value} />}
      {!report && (
        <div
          class={`drop${over.value ? ' drop-over' : ''}`}
          onDragOver={(event) => {
            event.preventDefault();
            over.value = true;
          }}
          onDragLeave={() => (over.value = false)}
          onDrop={(event) => {
            event.preventDefault();
            over.value = false;
            void read(event.dataTransfer?.files[0]);
          }}
        >
          <p class="empty-title">Drop a report here, or choose one above</p>
          <p class="empty-text">The simulator runs the real control plane against a simulated world, with faults as often as fleets have them. Make a report, then open it:</p>
          <Equivalent cli="argosy sim list" label="Which scenarios there are" />
          <Equivalent cli="argosy sim run llama3 --seed 1 --json report.json" label="Make a report" />
          <p class="muted">The file is read by this page and sent nowhere. A failed run can be replayed by its seed, step by step the same.</p>
        </div>
      )}
      {report?.kind === 'run' && <OneRun run={report.run} />}
      {report?.kind === 'runs' && (
        <Section title={`${plural(report.runs.length, 'seed')}, ${count(report.runs.filter((run) => !run.passed).length)} failed`} aside={<span class="muted">One seed alone has its series: replay it with --json.</span>}>
          <Table
            label="Seeds"
            columns={[
              { key: 'seed', head: 'Seed', end: true, width: '10ch', cell: (run) => String(run.seed), value: (run) => run.seed },
              { key: 'passed', head: 'Came to', width: '120px', cell: (run) => <Badge look={run.passed ? VERDICT.passed : VERDICT.failed} />, value: (run) => String(run.passed) },
              { key: 'time', head: 'Simulated', end: true, hide: 'phone', width: '12ch', cell: (run) => span(run.simulated_seconds), value: (run) => run.simulated_seconds },
              { key: 'events', head: 'Events', end: true, hide: 'phone', width: '13ch', cell: (run) => count(run.events), value: (run) => run.events },
              { key: 'what', head: 'What', cell: (run) => <Text value={run.violations[0]?.message ?? run.assertions.find((one) => !one.holds)?.expected ?? ''} max={160} brief /> },
              { key: 'replay', head: 'Replay', hide: 'tablet', cell: (run) => <Text value={`${run.replay} --json report.json`} mono max={120} brief /> },
            ]}
            rows={report.runs}
            rowKey={(run) => String(run.seed)}
            order="passed"
          />
        </Section>
      )}
    </>
  );
}
