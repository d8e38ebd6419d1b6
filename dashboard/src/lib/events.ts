/** Everything that happened to nodes, as it happens: the newest of the past first, then what the stream tells. */
import { signal, type Signal } from '@preact/signals';
import { address, asProblem, FLEET, get, type Problem } from './api';
import { HEALTH, lookOf, SEVERITY, type StateLook } from './states';
import { Stream } from './stream';
import type { LedgerEntry } from './types';

export interface EventList {
  items: LedgerEntry[];
  next?: number;
}

/** Kept in the page; older ones are asked for again. A fleet on fire writes a few hundred a second. */
export const KEPT_MAX = 5_000;
const PAGE = 300;
/** The server says that it is still there every 15 s. */
const SILENT_MS = 40_000;

const look = (word: string, tone: StateLook['tone'], glyph: StateLook['glyph'], means: string): StateLook => ({ word, tone, glyph, means });

/** The kinds of entries, in the order in which they usually follow each other. */
export const ENTRY: Record<string, StateLook> = {
  registered: look('Registered', 'ok', 'dot', 'An agent came.'),
  registration_refused: look('Refused', 'bad', 'cross', 'An agent was not let in.'),
  event: look('Event', 'warn', 'triangle', 'A node reported something.'),
  check: look('Check', 'idle', 'ring', 'A check of a node passed or failed.'),
  health: look('Health', 'warn', 'half', 'A node became well or sick.'),
  cleared: look('Cleared', 'ok', 'check', 'What was found is over.'),
  liveness: look('Liveness', 'unknown', 'clock', 'A node fell silent, or was heard again.'),
  status: look('Status', 'move', 'half', 'A node came into service or left it.'),
  decision: look('Decision', 'held', 'bar', 'Argosy decided to act, or was held back.'),
  command: look('Command', 'move', 'dot', 'A node was told something, or answered.'),
  external: look('External', 'idle', 'ring', 'The workload system was told.'),
  flag: look('Flag', 'warn', 'triangle', 'Something to know about a node.'),
};

/** The look of one entry: its kind's word, in the tone of what it says. */
export function entryLook(entry: LedgerEntry): StateLook {
  const kind = lookOf(ENTRY, entry.type);
  const of = (one: StateLook): StateLook => ({ ...kind, tone: one.tone, glyph: one.glyph });
  if ((entry.type === 'health' || entry.type === 'check') && entry.to) return of(lookOf(HEALTH, entry.to));
  if (entry.type === 'event' && entry.verdict?.severity) return of(SEVERITY[entry.verdict.severity] ?? kind);
  if (entry.type === 'command' && entry.command?.state === 'failed') return { ...kind, tone: 'bad', glyph: 'cross' };
  return kind;
}

/** A list of entries, newest first, with others joined in by their numbers. */
export function joinEntries(a: readonly LedgerEntry[], b: readonly LedgerEntry[]): LedgerEntry[] {
  const all = new Map([...a, ...b].map((entry) => [entry.sequence, entry]));
  return [...all.values()].sort((x, y) => y.sequence - x.sequence);
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
  private readonly stream: Stream;
  private frame = false;

  constructor(private readonly filters: { node?: string; pool?: string } = {}) {
    this.stream = new Stream({
      address: () => address(`${FLEET}/events`, { ...filters, watch: true, after: this.entries.peek()[0]?.sequence ?? 0 }),
      silentMs: SILENT_MS,
      onEvent: (event) => {
        const message = JSON.parse(event.data) as { type: string; object?: LedgerEntry };
        if (message.type === 'ADDED' && message.object) this.add(message.object);
        return false;
      },
      onProblem: (problem) => {
        this.error.value = problem?.problem ?? null;
        if (problem?.status !== 410) return false;
        // Where we were is no longer kept: begin anew with the newest.
        this.entries.value = [];
        this.older.value = null;
        void this.first();
        return false;
      },
    });
  }

  /** Follow until the function that is returned is called. */
  use(): () => void {
    let off: (() => void) | null = null;
    let done = false;
    // The past first: the stream goes on from its newest entry.
    void this.first().finally(() => {
      if (!done) off = this.stream.use();
    });
    return () => {
      done = true;
      off?.();
    };
  }

  async loadOlder(): Promise<void> {
    if (this.older.peek() === null) return;
    try {
      const page = await get<EventList>(`${FLEET}/events`, { ...this.filters, limit: PAGE, before: this.older.peek() });
      this.older.value = page.next ?? null;
      this.join(page.items, this.entries.peek().length + PAGE);
    } catch (thrown) {
      this.error.value = asProblem(thrown);
    }
  }

  private async first(): Promise<void> {
    try {
      const page = await get<EventList>(`${FLEET}/events`, { ...this.filters, limit: PAGE });
      this.older.value ??= page.next ?? null;
      this.join(page.items, KEPT_MAX);
      this.error.value = null;
      this.ready.value = true;
    } catch (thrown) {
      this.error.value = asProblem(thrown);
    }
  }

  private add(entry: LedgerEntry): void {
    this.fresh.push(entry);
    // There are no frames while the tab is hidden, and the stream goes on for a while.
    if (this.fresh.length > KEPT_MAX) this.fresh.shift();
    if (this.frame) return;
    this.frame = true;
    requestAnimationFrame(() => {
      this.frame = false;
      this.ready.value = true;
      // So many may not be all that came: then those from before do not follow on.
      const max = this.fresh.length >= KEPT_MAX ? KEPT_MAX : Math.max(KEPT_MAX, this.entries.peek().length);
      this.join(this.fresh.splice(0), max);
    });
  }

  private join(more: readonly LedgerEntry[], max: number): void {
    const all = joinEntries(this.entries.peek(), more);
    this.entries.value = all.slice(0, max);
    // What is let go of here is asked for again from there.
    if (all.length > max) this.older.value = all[max - 1]?.sequence ?? null;
  }
}
