import { expect, it, vi } from 'vitest';
import { range } from './plot';

// The library looks at the window when it is loaded; the range does not.
vi.mock('uplot', () => ({ default: class {} }));
vi.mock('uplot/dist/uPlot.min.css', () => ({}));
vi.mock('../lib/theme', () => ({ theme: { value: 'light' } }));

it.each([
  [10, 20, 0, undefined, [0, 21.2]],
  [4000, 4100, 3900, undefined, [3900, 4112]],
  [0.5, 0.9, 0, 1, [0, 1]],
  [null, null, 0, undefined, [0, 1]],
  [0, 0, 0, undefined, [0, 1]],
])('values from %s to %s, from %s to %s, are shown in %j', (low, high, from, to, shown) => {
  expect(range(low, high, from, to)).toEqual(shown);
});
