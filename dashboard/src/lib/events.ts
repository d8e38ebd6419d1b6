/** Everything that happened to nodes, as it happens: the newest of the past first, then what the stream tells. */
import { signal, type Signal } from '@preact/signals';
import { address, asProblem, failure, FLEET, get, type ApiError, type Problem } from './api';
import { heard, onBack, unheard } from './connection';
import { authorization } from './session';
import { SseParser } from './sse';
import type { LedgerEntry } from './types';

export interface EventList {
  items: LedgerEntry[];
  next?: number;
}

/** Kept in the page; older ones are asked for again. A fleet on fire writes a few hundred a second. */
export const KEPT_MAX = 5_000;
const PAGE = 300;
const BACKOFF_FIRST_MS = 400;
const BACKOFF_MAX_MS = 8_000;

/** A list of entries, newest first, with others joined in by their numbers. */
export function joinEntries(a: readonly LedgerEntry[], b: readonly LedgerEntry[], max = KEPT_MAX): LedgerEntry[] {
  const all = new Map([...a, ...b].map((entry) => [entry.sequence, entry]));
  return [...all.values()].sort((x, y) => y.sequence - x.sequence).slice(0, max);
}

/** What is searched in an entry: everything a person sees of it. */
export function wordsOf(entry: LedgerEntry): string {
  return [entry.node_id, entry.type, entry.message, entry.action, entry.held_by, entry.from, entry.to, entry.verdict?.rule, entry.event?.event_type, entry.command?.type, entry.command?.by, entry.subject]
    .filter(Boolean)
    .join(' ')
    .toLowerCase();
}

/** Entries with all the words, of these kinds (none: of any). A word that begins with - must not be there. */
export function filterEntries(entries: readonly LedgerEntry[], typed: string, kinds: ReadonlySet<string>): LedgerEntry[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = words.filter((word) => !word.startsWith('-') || word === '-');
  const unwanted = words.filter((word) => word.startsWith('-') && word !== '-').map((word) => word.slice(1));
  return entries.filter((entry) => {
    if (kinds.size > 0 && !kinds.has(entry.type)) return false;
    if (words.length === 0) return true;
    const text = wordsOf(entry);
    return wanted.every((word) => text.includes(word)) && !unwanted.some((word) => text.includes(word));
  });
}

/** One JSON object a line, oldest first, as programs like it. */
export function toLines(entries: readonly LedgerEntry[]): string {
  return [...entries].reverse().map((entry) => `${JSON.stringify(entry)}\n`).join('');
}

export class EventFeed {
  /** Newest first. */
  readonly entries: Signal<readonly LedgerEntry[]> = signal([]);
  readonly ready = signal(false);
  readonly error: Signal<Problem | null> = signal(null);
  /** Where older ones begin; null where there are none. */
  readonly older: Signal<number | null> = signal(null);

  private readonly fresh: LedgerEntry[] = [];
  private frame = false;

  constructor(private readonly filters: { node?: string; pool?: string } = {}) {}

  /** Follow until the function that is returned is called. */
  use(): () => void {
    const abort = new AbortController();
    void this.run(abort.signal);
    return () => abort.abort();
  }

  async loadOlder(): Promise<void> {
    if (this.older.peek() === null) return;
    try {
      const page = await get<EventList>(`${FLEET}/events`, { ...this.filters, limit: PAGE, before: this.older.peek() });
      this.entries.value = joinEntries(this.entries.peek(), page.items, this.entries.peek().length + PAGE);
      this.older.value = page.next ?? null;
    } catch (thrown) {
      this.error.value = asProblem(thrown);
    }
  }

  private async run(signal: AbortSignal): Promise<void> {
    let wait = BACKOFF_FIRST_MS;
    while (!signal.aborted) {
      try {
        if (!this.ready.peek()) await this.first(signal);
        await this.follow(signal);
        wait = BACKOFF_FIRST_MS;
      } catch (thrown) {
        if (signal.aborted) return;
        const problem = asProblem(thrown);
        // Where it was is no longer kept: begin with the newest.
        if (problem.status === 410) this.ready.value = false;
        else this.error.value = problem;
        unheard();
      }
      await pause(wait, signal);
      wait = Math.min(wait * 2, BACKOFF_MAX_MS);
    }
  }

  private async first(signal: AbortSignal): Promise<void> {
    const page = await get<EventList>(`${FLEET}/events`, { ...this.filters, limit: PAGE }, signal);
    this.entries.value = joinEntries(this.entries.peek(), page.items);
    this.older.value = page.next ?? null;
    this.error.value = null;
    this.ready.value = true;
  }

  private async follow(signal: AbortSignal): Promise<void> {
    const after = this.entries.peek()[0]?.sequence;
    const response = await fetch(address(`${FLEET}/events`, { ...this.filters, watch: true, after: after ?? 0 }), {
      headers: { Accept: 'text/event-stream', ...authorization() },
      cache: 'no-store',
      signal,
    });
    heard();
    if (!response.ok || !response.body) throw (await failure(response)) as ApiError;
    this.error.value = null;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new SseParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      for (const event of parser.push(value)) {
        const message = JSON.parse(event.data) as { type: string; object?: LedgerEntry };
        if (message.type === 'ADDED' && message.object) this.add(message.object);
      }
    }
  }

  private add(entry: LedgerEntry): void {
    this.fresh.push(entry);
    if (this.frame) return;
    this.frame = true;
    requestAnimationFrame(() => {
      this.frame = false;
      this.entries.value = joinEntries(this.entries.peek(), this.fresh.splice(0), Math.max(KEPT_MAX, this.entries.peek().length));
    });
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      off();
      resolve();
    };
    const timer = setTimeout(done, ms);
    const off = onBack(done);
    signal.addEventListener('abort', done, { once: true });
  });
}
