import { expect, it } from 'vitest';
import { sort } from './table';

it('sorts numbers as numbers, names with numbers as people do, and what is missing last', () => {
  const rows = ['n10', 'n9', null, 'N1'];
  expect(sort(rows, (row) => row, false)).toEqual(['N1', 'n9', 'n10', null]);
  expect(sort(rows, (row) => row, true)).toEqual(['n10', 'n9', 'N1', null]);
  expect(sort([10, 9, 100], (row) => row, false)).toEqual([9, 10, 100]);
});
