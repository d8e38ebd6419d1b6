import { expect, it } from 'vitest';
import { availability, byCause, median, NotAReport, padded, readReport, seriesAt, type Run } from './simulation';

const outcome = {
  scenario: 'llama3', seed: 7, digest: 'ab', simulated_seconds: 7200, events: 10, violations: [], nodes: 2, gpus: 16, bytes_per_node: null,
  assertions: [{ expected: 'a', found: 'b', holds: false }],
  series: { step_seconds: 60, wanted: [16, 16], present: [16, 8], in_service: [16, 8], disrupted: [0, 1], budget: [1, 1], cost_per_hour: [50, 25], goodput: [1, 0.5] },
  faults: [
    { at: 5, target: 'n1', cause: 'GPU HBM3', kind: 'xid:79', interrupts: true, detected_after: 2, cordoned_after: 3, repaired_after: 100 },
    { at: 9, target: 'n2', cause: 'GPU HBM3', kind: 'xid:79', interrupts: false, detected_after: 4, cordoned_after: null, repaired_after: null },
    { at: 9, target: 'n2', cause: 'switch', kind: 'silent', interrupts: true, detected_after: null, cordoned_after: null, repaired_after: null },
  ],
  actions: { cordon: 1, replace: 3 }, rules: { 'xid-fatal': { hits: 2, nodes: 1, replaced: 1 } }, work: null, money: { total: 100, wasted: 5, bought: 3, returned: 1 },
};

function run(value: unknown): Run {
  const report = readReport(JSON.stringify(value));
  if (report.kind !== 'run') throw new Error('one run was expected');
  return report.run;
}

it('reads an outcome as the simulator writes it', () => {
  const one = run(outcome);
  expect(one).toMatchObject({ scenario: 'llama3', seed: 7, passed: false, replay: 'argosy sim run llama3 --seed 7', actions: [['replace', 3], ['cordon', 1]] });
  expect(seriesAt(one.series)).toEqual([0, 60]);
  expect(availability(one.series)).toBe(0.75);
});

it('reads many seeds, which have no series', () => {
  const report = readReport(JSON.stringify({ kind: 'SimulationRuns', scenario: 's', runs: [{ scenario: 's', seed: 1, passed: true }], violations: [{ seed: 1, invariant: 'I4', at: 3, message: 'm' }] }));
  expect(report).toMatchObject({ kind: 'runs', scenario: 's', violations: [{ seed: 1, invariant: 'I4' }] });
});

it('survives a file with wrong types in it', () => {
  const one = run({ scenario: '<img src=x>', series: { wanted: 'many', present: [null, 'x', 3] }, faults: [1, null, {}], rules: { a: 5 }, money: [], work: 'none' });
  expect(one.series.present).toEqual([0, 0, 3]);
  expect(one.faults.length).toBe(1);
  expect(one.rules).toEqual([{ rule: 'a', hits: 0, nodes: 0, replaced: 0 }]);
});

it.each([['{', 'not JSON'], ['[]', 'not a report'], ['{"a": 1}', 'no scenario'], ['{"kind": "SimulationComparison"}', 'comparison']])('says what is wrong with %j', (text, problem) => {
  expect(() => readReport(text)).toThrow(NotAReport);
  expect(() => readReport(text)).toThrow(problem);
});

it('thins long series without losing the peaks', () => {
  const length = 50_000;
  const disrupted = Array.from({ length }, (_, i) => (i === 33_334 ? 9 : 0));
  const one = run({ ...outcome, series: { step_seconds: 1, wanted: new Array(length).fill(1), present: [], in_service: new Array(length).fill(1), disrupted, budget: [], cost_per_hour: [], goodput: [] } });
  expect(one.series.disrupted.length).toBeLessThanOrEqual(20_000);
  expect(Math.max(...one.series.disrupted)).toBe(9);
  expect(one.series.step_seconds).toBe(3);
});

it('adds faults up by cause', () => {
  expect(byCause(run(outcome).faults)).toEqual([
    { cause: 'GPU HBM3', count: 2, interrupting: 1, detected: 3, repaired: 100, unrepaired: 1 },
    { cause: 'switch', count: 1, interrupting: 1, detected: null, repaired: null, unrepaired: 1 },
  ]);
  expect(median([])).toBeNull();
  expect(padded([1], 3)).toEqual([1, null, null]);
});
