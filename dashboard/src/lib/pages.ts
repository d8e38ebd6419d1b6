/** Lists that are longer than a page of the API: read page by page, and bounded. */
import { get, type Query } from './api';

/** As many as the API gives at once. */
const PAGE_SIZE = 1_000;
/** Twenty thousand machines are more than any cluster has; the page says where even that is not all. */
const PAGES_MAX = 20;

interface Listed {
  items: object[];
  total: number;
}

/**
 * All pages of a list as one. `total` may be more than there are items: then the limit was met. Something that moves to
 * another page while they are read may be there twice, and is counted once.
 */
export async function allPages<T extends Listed>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  const whole = await get<T>(path, { ...query, size: PAGE_SIZE, page: 1 }, signal);
  const known = new Set(whole.items.map(idOf));
  for (let page = 2, read = whole.items.length; read < whole.total && page <= PAGES_MAX; page += 1) {
    const { items } = await get<T>(path, { ...query, size: PAGE_SIZE, page }, signal);
    if (items.length === 0) break;
    read += items.length;
    for (const one of items) {
      const id = idOf(one);
      if (id !== null && known.has(id)) continue;
      known.add(id);
      whole.items.push(one);
    }
    // What went meanwhile is no longer waited for.
    if (items.length < PAGE_SIZE) whole.total = whole.items.length;
  }
  return whole;
}

/** Findings have none. */
function idOf(one: object): unknown {
  return 'id' in one ? one.id : null;
}
