import { expect, it } from 'vitest';
import { WatchState } from './live';

interface Item {
  id: string;
  n: number;
}

const added = (id: string, n = 0) => ({ type: 'ADDED' as const, revision: 1, object: { id, n } });
const bookmark = { type: 'BOOKMARK' as const, revision: 9 };

function started(): WatchState<Item> {
  const state = new WatchState<Item>();
  state.take(added('a'), null);
  state.take(added('b'), null);
  state.take(bookmark, '9');
  return state;
}

it('shows nothing before everything was told', () => {
  const state = new WatchState<Item>();
  expect(state.take(added('a'), null)).toBeNull();
  expect(state.items.size).toBe(0);
  expect(state.take(bookmark, '9')).toBe('all');
  expect([...state.items.keys()]).toEqual(['a']);
});

it('changes and removes one at a time, and knows where to resume', () => {
  const state = started();
  expect(state.take({ type: 'MODIFIED', revision: 10, object: { id: 'a', n: 1 } }, '10')).toEqual({ changed: 'a' });
  expect(state.take({ type: 'DELETED', revision: 11, object: { id: 'b', n: 0 } }, '11')).toEqual({ changed: 'b' });
  expect([...state.items.values()]).toEqual([{ id: 'a', n: 1 }]);
  expect(state.resume).toBe('11');
});

it('keeps what is shown while it begins anew, and then drops what is gone', () => {
  const state = started();
  state.restart();
  expect(state.resume).toBeNull();
  state.take(added('b'), null);
  expect([...state.items.keys()]).toEqual(['a', 'b']);
  state.take(bookmark, '20');
  expect([...state.items.keys()]).toEqual(['b']);
});

it('a resumed watch that only sends a bookmark changes nothing', () => {
  const state = started();
  expect(state.take({ ...bookmark, revision: 12 }, '12')).toBeNull();
  expect(state.items.size).toBe(2);
});

it('keeps things apart whose ids are the same, by the key it was given', () => {
  const state = new WatchState<Item & { uid: string }>((item) => item.uid);
  for (const uid of ['1', '2']) state.take({ type: 'ADDED', revision: 1, object: { id: 'gpus', n: 0, uid } }, null);
  state.take(bookmark, '9');
  expect(state.items.size).toBe(2);
  expect(state.take({ type: 'DELETED', revision: 10, object: { id: 'gpus', n: 0, uid: '1' } }, '10')).toEqual({ changed: '1' });
  expect([...state.items.keys()]).toEqual(['2']);
});
