import { expect, it } from 'vitest';
import { ago, bytes, duration, money, percent, plural, time } from './format';

it.each([
  [0, '0s'],
  [4_400, '4s'],
  [65_000, '1m 5s'],
  [12 * 60_000 + 5_000, '12m'],
  [200 * 60_000, '3h 20m'],
  [20 * 3_600_000, '20h'],
  [122 * 3_600_000, '5d 2h'],
  [-5, '0s'],
])('%i ms are %s', (ms, text) => {
  expect(duration(ms)).toBe(text);
});

it.each([
  [1_000, 1_200, 'now'],
  [0, 90_000, '1m 30s ago'],
  [90_000, 0, 'in 1m 30s'],
])('%i seen at %i is %s', (at, now, text) => {
  expect(ago(at, now)).toBe(text);
});

it('numbers read well', () => {
  expect([money(12.5), money(12_345.6), money(-0)]).toEqual(['$12.50', '$12,346', '$0.00']);
  expect([bytes(0), bytes(1536), bytes(85_899_345_920)]).toEqual(['0 B', '1.5 KiB', '80.0 GiB']);
  expect([percent(1, 200), percent(1, 3), percent(1, 0)]).toEqual(['0.5\u00a0%', '33\u00a0%', '–']);
  expect([percent(1, 90_000), percent(89_999, 90_000), percent(3, 3), percent(0, 3)]).toEqual(['0.1\u00a0%', '99.9\u00a0%', '100\u00a0%', '0\u00a0%']);
  expect([plural(1, 'node'), plural(1200, 'node')]).toEqual(['1 node', '1,200 nodes']);
});

it('a time that is none is null', () => {
  expect([time(undefined), time('soon'), time('1970-01-01T00:00:01Z')]).toEqual([null, null, 1000]);
});
