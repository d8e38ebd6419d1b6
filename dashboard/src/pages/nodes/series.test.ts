import { expect, it } from 'vitest';
import type { FleetNode } from '../../lib/fleet';
import { append, empty, fromHistory, METRICS, newest, span } from './series';

const node = (at: number, t: (number | null)[]): FleetNode => ({
  id: 'n',
  first: 0,
  status: 'ACTIVE',
  health: 'HEALTHY',
  liveness: 'Fresh',
  revision: 1,
  gpus: 2,
  at,
  t,
  ce: [1, 2],
  ue: [0, 3],
});

const item = (second: number) => ({ at: new Date(second * 1000).toISOString() });

it('history goes before what came meanwhile, without doubling a moment', () => {
  const series = empty(2);
  append(series, node(30_000, [60, 61]));
  fromHistory(series, {
    items: [item(10), item(20), item(30)],
    gpus: [{ index: 0, temperature: [50, null, 60], ecc_corrected: [0, 1, 1], ecc_uncorrected: [0, 0, 0] }],
  });
  expect(series.at).toEqual([10, 20, 30]);
  expect(series.gpus[0]?.temperature).toEqual([50, null, 60]);
  expect(series.gpus[0]?.ecc).toEqual([0, 1, 1]);
  expect(series.gpus[1]?.temperature).toEqual([null, null, 61]);
});

it('takes each moment once, and keeps an hour', () => {
  const series = empty(2);
  expect(append(series, node(1_000, [1, 2]))).toBe(true);
  expect(append(series, node(1_000, [1, 2]))).toBe(false);
  for (let second = 2; second < 5_000; second += 1) append(series, node(second * 1000, [second, null]));
  expect(series.at.length).toBe(3_600);
  expect(series.gpus[0]?.temperature.length).toBe(3_600);
  expect(newest(series, 'temperature')).toEqual([4_999]);
  expect(newest(series, 'ecc')).toEqual([1, 5]);
});

it('every metric speaks of nothing and of something', () => {
  for (const metric of METRICS) {
    expect(metric.summary([])).toBe('not measured');
    expect(metric.summary([40, 60])).toMatch(/\d/);
    expect(metric.say(null)).toBe('–');
    const [from, to] = metric.range(null, null);
    expect(to).toBeGreaterThan(from);
  }
});

it.each([
  ['an hour of measurements', 0, 3600, 900, [2700, 3600]],
  ['five minutes of them', 3300, 3600, 900, [3300, 3600]],
  ['ten seconds', 3590, 3600, 900, [3540, 3600]],
  ['none', null, null, 900, [-60, 0]],
])('a graph of 15 minutes with %s', (_, first, last, seconds, shown) => {
  expect(span(first, last, seconds)).toEqual(shown);
});
