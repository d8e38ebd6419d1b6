/** Where we are: the address is the state. Paths here are without the base `/ui`. */
import { computed, signal } from '@preact/signals';

export const BASE = '/ui';

interface Place {
  path: string;
  query: URLSearchParams;
}

const place = signal<Place>({ path: '/', query: new URLSearchParams() });

export const path = computed(() => place.value.path);
export const query = computed(() => place.value.query);

/** The address of a path with these parameters; empty ones are left out. */
export function href(to: string, parameters: Record<string, string | number | null | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== '') search.set(key, String(value));
  }
  const text = search.toString();
  return `${BASE}${to}${text ? `?${text}` : ''}`;
}

/** One segment of a path, whatever a name contains. */
export function segment(name: string): string {
  return encodeURIComponent(name);
}

/** Go to an address made by `href`. */
export function go(address: string, replace = false): void {
  const same = address === location.pathname + location.search;
  if (replace || same) history.replaceState(null, '', address);
  else history.pushState(null, '', address);
  read();
  if (!replace) scrollTo(0, 0);
}

/** Change parameters of the present view without a new entry in the history; null removes one. */
export function setQuery(changes: Record<string, string | null>): void {
  const next = new URLSearchParams(place.peek().query);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === '') next.delete(key);
    else next.set(key, value);
  }
  const text = next.toString();
  go(`${BASE}${place.peek().path}${text ? `?${text}` : ''}`, true);
}

/** Follow the address bar, and links inside the dashboard without a reload. */
export function startRouter(): void {
  addEventListener('popstate', read);
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
      return;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!link || link.target || link.hasAttribute('download')) return;
    const url = new URL(link.href);
    if (url.origin !== location.origin || !inside(url.pathname)) return;
    event.preventDefault();
    go(url.pathname + url.search);
  });
  read();
}

function inside(pathname: string): boolean {
  return pathname === BASE || pathname.startsWith(`${BASE}/`);
}

function read(): void {
  const raw = location.pathname.slice(BASE.length).replace(/\/+$/, '');
  place.value = { path: raw === '' ? '/' : raw, query: new URLSearchParams(location.search) };
}

export type Params = Record<string, string>;

/** What `/nodes/:id` makes of a path, or null if it is another one. */
export function match(pattern: string, at: string): Params | null {
  const want = pattern.split('/');
  const have = at.split('/');
  if (want.length !== have.length) return null;
  const params: Params = {};
  for (const [i, part] of want.entries()) {
    const value = have[i] ?? '';
    if (part.startsWith(':')) {
      try {
        params[part.slice(1)] = decodeURIComponent(value);
      } catch {
        return null;
      }
      if (value === '') return null;
    } else if (part !== value) return null;
  }
  return params;
}
