import { describe, expect, it } from 'vitest';
import { blockers, flat, generationsOf, lanesOf, nameProblem, phaseOf, readLabels, ticks } from './resource';
import type { HistoryEntry, StatusLine, StatusList, Tri } from './types';

const T0 = Date.parse('2026-01-01T00:00:00Z');

function entry(sequence: number, adapter: string, second: number, available: Tri, reason = 'X', applied: Tri = 'True', generation = 1): HistoryEntry {
  const at = new Date(T0 + second * 1000).toISOString();
  const condition = (type: string, status: Tri) => ({ type, status, reason, message: `${type} ${reason}`, last_transition_time: at });
  return {
    sequence,
    at,
    generation,
    report: {
      adapter,
      observed_generation: generation,
      conditions: [condition('Available', available), condition('Applied', applied), condition('Health', 'True')],
      data: {},
      created_time: at,
      last_report_time: at,
    },
  };
}

const line = (adapter_name: string, phase: StatusLine['phase']): StatusLine => ({
  id: adapter_name,
  adapter_name,
  cluster_id: 'c',
  created_at: '',
  last_transition_time: '2026-01-01T00:00:00Z',
  message: 'm',
  phase,
});

it.each([
  ['True', 'Done', 'True', 'Complete'],
  ['False', 'ProvisioningInProgress', 'True', 'Running'],
  ['False', 'QuotaExceeded', 'False', 'Failed'],
  ['False', 'NotStarted', 'False', 'Pending'],
  ['Unknown', '', 'True', 'Running'],
  ['Unknown', '', 'Unknown', 'Pending'],
] as const)('Available %s (%s), Applied %s is %s, as the server has it', (available, reason, applied, phase) => {
  expect(phaseOf(entry(1, 'a', 0, available, reason, applied).report)).toBe(phase);
});

describe('lanes', () => {
  const history = [
    entry(4, 'dns', 9, 'True', 'Done'),
    entry(3, 'dns', 4, 'False', 'InProgress'),
    entry(2, 'validation', 4, 'True', 'Done'),
    entry(1, 'validation', 0, 'False', 'InProgress'),
  ];
  it('has a bar for each attempt, until the next one', () => {
    const { lanes, from, to } = lanesOf(history, [line('validation', 'Complete'), line('dns', 'Complete'), line('late', 'Complete')], T0 + 3_600_000, 1);
    expect(lanes.map((lane) => [lane.adapter, lane.bars.map((bar) => bar.phase)])).toEqual([
      ['validation', ['Running', 'Complete']],
      ['dns', ['Running', 'Complete']],
      ['late', []],
    ]);
    expect(from).toBe(T0);
    expect(to).toBeLessThan(T0 + 15_000);
    expect(lanes[0]?.bars[0]).toMatchObject({ from: T0, to: T0 + 4000, open: false });
  });
  it('lasts until now while somebody is at work', () => {
    expect(lanesOf(history, [line('dns', 'Running')], T0 + 60_000, null).to).toBe(T0 + 60_000);
  });
  it('joins what is too narrow to be seen, and counts it', () => {
    const many = Array.from({ length: 500 }, (_, i) => entry(i, 'm', i, 'False', 'Quota', 'False'));
    const bars = lanesOf(many, [line('m', 'Failed')], T0 + 500_000, null).lanes[0]?.bars ?? [];
    expect(bars.length).toBeLessThan(120);
    expect(bars.reduce((sum, bar) => sum + bar.reports, 0)).toBe(500);
    expect(bars.every((bar, i) => i === 0 || bar.from === bars[i - 1]?.to)).toBe(true);
  });
  it('shows another generation alone', () => {
    const two = [...history, entry(9, 'dns', 100, 'True', 'Done', 'True', 2)];
    expect(lanesOf(two, [], T0 + 200_000, 2).lanes.map((lane) => lane.adapter)).toEqual(['dns']);
    expect(lanesOf(two, [], T0 + 200_000, null).generations.map((one) => one.generation)).toEqual([1, 2]);
    expect(generationsOf(two).map((one) => [one.generation, one.entries.length, one.adapters.length])).toEqual([
      [2, 1, 1],
      [1, 4, 2],
    ]);
    expect(generationsOf(history)[0]?.done).toBe(new Date(T0 + 9000).toISOString());
  });
});

it('names the adapter that blocks, the broken one first', () => {
  const failed = entry(1, 'machines', 0, 'False', 'QuotaExceeded', 'False').report;
  failed.data = { guidance: 'ask for more. The next try is at 2026-01-01T00:01:00.123Z.', retryAt: '2026-01-01T00:01:00Z', nodesReady: 1 };
  const list = { statuses: [line('later', 'Pending'), line('validation', 'Complete'), line('machines', 'Failed')], items: [failed] } as unknown as StatusList;
  expect(blockers(list)).toMatchObject([
    { adapter: 'machines', reason: 'QuotaExceeded', guidance: 'ask for more.', retryAt: '2026-01-01T00:01:00Z' },
    { adapter: 'later', phase: 'Pending' },
  ]);
});

it('ticks are few and round', () => {
  expect(ticks(0, 10_000)).toEqual([0, 2000, 4000, 6000, 8000, 10_000]);
  expect(ticks(0, 86_400_000).length).toBeLessThanOrEqual(7);
});

it('specs become rows', () => {
  expect(flat({ a: 1, b: { c: ['x', 'y'], d: [{ e: null }] } })).toEqual([
    { name: 'a', value: '1' },
    { name: 'b.c', value: 'x, y' },
    { name: 'b.d.0.e', value: '–' },
  ]);
});

it.each([
  ['', null], ['a', null], ['a-1', null], ['A', 'Lower'], ['a_b', 'Only'], ['-a', 'begins'], ['a'.repeat(64), 'At most'],
])('the name %j', (name, problem) => {
  const found = nameProblem(name);
  if (problem === null) expect(found).toBeNull();
  else expect(found).toContain(problem);
});

it('labels are read as they are typed', () => {
  expect(readLabels('team=ml, env:prod  x=')).toEqual({ labels: { team: 'ml', env: 'prod', x: '' }, problem: null });
  expect(readLabels('team').problem).toContain('key=value');
  expect(readLabels('-a=b').problem).toContain('key of a label');
  expect(readLabels('a=b!').problem).toContain('value of a label');
});
