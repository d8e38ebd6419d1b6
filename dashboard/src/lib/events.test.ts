import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { entryLook, EventFeed, filterEntries, joinEntries, KEPT_MAX, toLines } from './events';
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

it('joins by number, newest first', () => {
  expect(joinEntries(some.slice(1), some.slice(0, 2)).map((one) => one.sequence)).toEqual([3, 2, 1]);
});

describe('a feed that is longer than a page keeps', () => {
  /** How many entries the server has; the stream tells of those that come later. */
  let kept = 0;
  let tell: (entry: LedgerEntry) => void = () => undefined;

  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal('document', { visibilityState: 'visible', addEventListener: () => undefined, removeEventListener: () => undefined });
    vi.stubGlobal('requestAnimationFrame', (act: () => void) => setTimeout(act, 16));
    vi.stubGlobal('fetch', async (address: string) => {
      const query = new URL(address, 'http://server').searchParams;
      if (query.has('watch')) {
        const body = new ReadableStream<Uint8Array>({
          start: (into) => void (tell = (object) => into.enqueue(new TextEncoder().encode(`data: ${JSON.stringify({ type: 'ADDED', object })}\n\n`))),
        });
        return new Response(body, { headers: { 'Content-Type': 'text/event-stream' } });
      }
      const newest = Number(query.get('before') ?? kept + 1) - 1;
      const items = Array.from({ length: Math.min(Number(query.get('limit')), newest) }, (_, i) => entry(newest - i, 'n', 'check', ''));
      return Response.json({ items, next: items.at(-1)?.sequence === 1 ? undefined : items.at(-1)?.sequence });
    });
  });

  afterEach(() => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  it('asks again for what it let go of, and skips nothing', async () => {
    kept = 100;
    const feed = new EventFeed();
    const off = feed.use();
    await vi.advanceTimersByTimeAsync(100);
    expect(feed.older.value).toBeNull();
    for (kept = 101; kept <= KEPT_MAX + 50; kept += 1) tell(entry(kept, 'n', 'check', ''));
    await vi.advanceTimersByTimeAsync(100);
    expect(feed.entries.value.length).toBe(KEPT_MAX);
    expect(feed.entries.value.at(-1)?.sequence).toBe(51);
    await feed.loadOlder();
    const sequences = feed.entries.value.map((one) => one.sequence);
    expect(sequences).toEqual(Array.from({ length: KEPT_MAX + 50 }, (_, i) => KEPT_MAX + 50 - i));
    expect(feed.older.value).toBeNull();
    // From now on each that comes lets go of one.
    tell(entry(KEPT_MAX + 51, 'n', 'check', ''));
    await vi.advanceTimersByTimeAsync(100);
    expect(feed.older.value).toBe(2);
    off();
  });
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
