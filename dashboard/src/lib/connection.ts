/**
 * Whether the server is there. Streams and answers say when they hear it; after three silent seconds it is asked, and
 * after four and a half without an answer the connection is `lost`: banner, grey values, and a retry every second.
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
const ASK_AFTER_MS = 3_000;
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
    // A proxy in front answers 502 to 504 when there is nobody behind it.
    if (answer.status < 500) heard();
    else connection.value = 'lost';
  } catch {
    connection.value = 'lost';
  } finally {
    asking = false;
  }
}
