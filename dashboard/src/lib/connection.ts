/**
 * Whether the server is there. Streams and answers say when they hear it; after two silent seconds it is asked, and
 * after four without an answer the connection is `lost`: banner, grey values, and a retry every second.
 */
import { signal } from '@preact/signals';

export type Connection = 'connecting' | 'live' | 'lost';

export const connection = signal<Connection>('connecting');

/** When the server was last heard, by this browser's clock. */
export const heardAt = signal(Date.now());

/** The minute hand of the page: ages are told by it, so that all of them move together. */
export const now = signal(Date.now());

const TICK_MS = 500;
/** Streams have keep-alives; who is silent for longer is asked. */
const ASK_AFTER_MS = 2_000;
const ANSWER_MS = 1_500;
const RETRY_MS = 1_000;

let asking = false;
let askedAt = 0;
let last = Date.now();
const back = new Set<() => void>();

/** Something came from the server. */
export function heard(): void {
  last = Date.now();
  if (connection.peek() !== 'live') {
    const was = connection.peek();
    connection.value = 'live';
    heardAt.value = last;
    if (was === 'lost') for (const listener of back) listener();
  }
}

/** An answer came: from the server, or from a proxy before it that found nobody there. */
export function heardFrom(response: Response): void {
  if (isProxys(response)) unheard();
  else heard();
}

/** What is no problem of ours and says `bad gateway`, `unavailable` or `timeout`. */
export function isProxys(response: Response): boolean {
  return response.status >= 502 && response.status <= 504 && !(response.headers.get('Content-Type') ?? '').includes('json');
}

/** A request failed or a stream broke: ask at once instead of waiting for silence. */
export function unheard(): void {
  void ask();
}

/** Call when the connection is back after it was lost. */
export function onBack(listener: () => void): () => void {
  back.add(listener);
  return () => back.delete(listener);
}

export function startConnection(): void {
  setInterval(() => {
    const at = Date.now();
    now.value = at;
    if (last - heardAt.peek() > 1_000) heardAt.value = last;
    if (document.visibilityState === 'hidden') return;
    const silent = at - last > ASK_AFTER_MS;
    if ((silent || connection.peek() === 'lost') && at - askedAt > RETRY_MS) void ask();
  }, TICK_MS);
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') void ask();
  });
  void ask();
}

async function ask(): Promise<void> {
  if (asking) return;
  asking = true;
  askedAt = Date.now();
  try {
    const answer = await fetch('/healthz', { cache: 'no-store', signal: AbortSignal.timeout(ANSWER_MS) });
    // A server that says that it is not well is there; a proxy that finds nobody is not.
    if (isProxys(answer)) connection.value = 'lost';
    else heard();
  } catch {
    connection.value = 'lost';
  } finally {
    asking = false;
  }
}
