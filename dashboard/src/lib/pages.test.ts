import { afterEach, expect, it, vi } from 'vitest';
import { allPages } from './pages';

const asked: string[] = [];

/** A server with so many machines, each of which costs two. */
function serve(total: number, moved = 0): void {
  vi.stubGlobal('fetch', async (address: string) => {
    const url = new URL(address, 'http://server');
    asked.push(url.search);
    const size = Number(url.searchParams.get('size'));
    const first = (Number(url.searchParams.get('page')) - 1) * size;
    // From the second page on everything has moved back by as many as were added meanwhile.
    const from = first === 0 ? 0 : first - moved;
    const items = Array.from({ length: Math.max(0, Math.min(size, total - from)) }, (_, i) => ({ id: `m-${from + i}`, cost_per_hour: 2 }));
    return Response.json({ items, total: total + (first === 0 ? 0 : moved) });
  });
}

afterEach(() => {
  asked.length = 0;
  vi.unstubAllGlobals();
});

interface Machines {
  items: { id: string; cost_per_hour: number }[];
  total: number;
}

it.each([
  [0, 0, 1],
  [1, 1, 1],
  [1_000, 1_000, 1],
  [1_001, 1_001, 2],
  [12_345, 12_345, 13],
  // More than are read: how many there are is known all the same.
  [30_000, 20_000, 20],
])('of %d machines it reads %d, in %d pages', async (total, read, pages) => {
  serve(total);
  const all = await allPages<Machines>('/instances', { search: 'open = true' });
  expect(all.items.length).toBe(read);
  expect(all.total).toBe(total);
  expect(all.items.reduce((sum, one) => sum + one.cost_per_hour, 0)).toBe(2 * read);
  expect(asked.length).toBe(pages);
  expect(asked.every((search) => search.includes('search=open'))).toBe(true);
});

it('what is on two pages because the list grew is counted once', async () => {
  serve(2_500, 3);
  const all = await allPages<Machines>('/instances');
  expect(new Set(all.items.map((one) => one.id)).size).toBe(all.items.length);
  expect(all.items.length).toBe(2_500);
});
