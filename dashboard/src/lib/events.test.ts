import { expect, it } from 'vitest';
import { entryLook, filterEntries, joinEntries, toLines } from './events';
import type { LedgerEntry } from './types';

const entry = (sequence: number, node_id: string, type: string, message: string): LedgerEntry => ({ sequence, node_id, type, message, revision: sequence, at: '2026-01-01T00:00:00Z' });
const some = [entry(3, 'gpu-3', 'event', 'Xid 79 on GPU 3'), entry(2, 'gpu-2', 'decision', 'cordon, because of Xid 79'), entry(1, 'gpu-1', 'health', 'Healthy')];

it.each([
  ['', [], [3, 2, 1]],
  ['xid 79', [], [3, 2]],
  ['XID -cordon', [], [3]],
  ['', ['health', 'event'], [3, 1]],
  ['gpu-2', ['event'], []],
  ['-', [], [3, 2, 1]],
])('the words %j of the kinds %j find %j', (typed, kinds, found) => {
  expect(filterEntries(some, typed, new Set(kinds)).map((one) => one.sequence)).toEqual(found);
});

it('joins by number, newest first, and forgets the oldest', () => {
  expect(joinEntries(some.slice(1), some.slice(0, 2)).map((one) => one.sequence)).toEqual([3, 2, 1]);
  expect(joinEntries(some, [], 2).map((one) => one.sequence)).toEqual([3, 2]);
});

it('exports one object a line, oldest first', () => {
  const lines = toLines(some).trimEnd().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as LedgerEntry).sequence)).toEqual([1, 2, 3]);
});

it('an entry has the tone of what it says', () => {
  const of = (more: Partial<LedgerEntry>) => entryLook({ ...entry(1, 'n', 'health', ''), ...more });
  expect(of({ to: 'HEALTHY' })).toMatchObject({ word: 'Health', tone: 'ok' });
  expect(of({ to: 'UNHEALTHY' })).toMatchObject({ word: 'Health', tone: 'bad' });
  expect(of({ type: 'event', verdict: { policy: 'p', policy_version: 1, rule: 'r', severity: 'degraded' } })).toMatchObject({ word: 'Event', tone: 'warn' });
  expect(of({ type: 'what-nobody-knows' })).toMatchObject({ word: 'what-nobody-knows', tone: 'unknown' });
});
