/**
 * Lists that keep themselves current. `Live` holds what a watch tells: all there is, then every change, resumed where
 * it broke off, begun anew when the server no longer knows where that was. `Polled` asks every few seconds, for what
 * has no watch. Both rest while nobody looks, and while the tab is hidden.
 */
import { signal, type Signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { address, ApiError, get, type Problem, type Query } from './api';
import { onBack } from './connection';
import { token } from './session';
import { Stream } from './stream';

export interface Keyed {
  id: string;
}

interface WatchMessage<T> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  revision: number;
  object?: T;
}

/** What a stream of watch events means for a list. Pure, so that it can be tested. */
export class WatchState<T extends Keyed> {
  items = new Map<string, T>();
  /** Where to resume; null until everything there is was told. */
  resume: string | null = null;
  /** Everything that is there is collected here first, so that a list that begins anew does not blink. */
  private fresh: Map<string, T> | null = new Map();

  /** The server told everything at least once. */
  complete = false;

  /** Node pools of two clusters may have the same id; they are told apart by another member. */
  constructor(private readonly keyOf: (item: T) => string = (item) => item.id) {}

  /** Begin anew: what is shown stays until the new list is complete. */
  restart(): void {
    this.fresh = new Map();
    this.resume = null;
  }

  /** Takes one event in and says what changed: an id, `all`, or nothing. */
  take(message: WatchMessage<T>, id: string | null): { changed: string } | 'all' | null {
    if (id !== null) this.resume = id;
    if (message.type === 'BOOKMARK') {
      if (!this.fresh) return null;
      this.items = this.fresh;
      this.fresh = null;
      this.complete = true;
      return 'all';
    }
    const object = message.object;
    if (!object) return null;
    const into = this.fresh ?? this.items;
    const key = this.keyOf(object);
    if (message.type === 'DELETED') into.delete(key);
    else into.set(key, object);
    return this.fresh ? null : { changed: key };
  }
}

/** A quiet watch sends a comment every 15 seconds. */
const SILENT_MS = 40_000;

export class Live<T extends Keyed> {
  /** Counts changes, at most once a frame: read it to be drawn again. */
  readonly version: Signal<number> = signal(0);
  /** Whether everything was told at least once. */
  readonly ready: Signal<boolean> = signal(false);
  readonly error: Signal<Problem | null> = signal(null);

  private readonly state: WatchState<T>;
  private readonly stream: Stream;
  private frame = false;

  constructor(
    readonly path: string,
    readonly query: Query = {},
    private readonly keyOf: (item: T) => string = (item) => item.id,
  ) {
    this.state = new WatchState<T>(keyOf);
    this.stream = new Stream({
      address: () => address(path, { ...query, watch: true, resource_version: this.state.resume }),
      silentMs: SILENT_MS,
      onOpen: () => {
        if (this.state.resume === null) this.state.restart();
      },
      onEvent: (event) => this.take(event.data, event.id),
      onProblem: (thrown) => {
        // Away for too long: the list is told anew.
        const gone = thrown?.status === 410;
        if (gone) this.state.restart();
        else this.error.value = thrown?.problem ?? null;
        return gone;
      },
    });
  }

  get items(): ReadonlyMap<string, T> {
    return this.state.items;
  }

  /** Keep current until the function that is returned is called. */
  use(): () => void {
    return this.stream.use();
  }

  /** A value the server gave us in another way, such as the answer to a command. */
  put(item: T): void {
    this.state.items.set(this.keyOf(item), item);
    this.bump();
  }

  private take(data: string, id: string | null): boolean {
    const message = JSON.parse(data) as WatchMessage<T>;
    if (message.type === 'ERROR') throw new ApiError(message.object as unknown as Problem);
    const change = this.state.take(message, id);
    if (change === 'all') this.ready.value = true;
    if (change !== null) this.bump();
    return false;
  }

  private bump(): void {
    if (this.frame) return;
    this.frame = true;
    requestAnimationFrame(() => {
      this.frame = false;
      this.version.value += 1;
    });
  }
}

/** Asked again every `every` milliseconds while somebody looks. */
export class Polled<T> {
  readonly data: Signal<T | null> = signal(null);
  readonly error: Signal<Problem | null> = signal(null);
  /** When the data came. */
  readonly at: Signal<number> = signal(0);

  private users = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private abort: AbortController | null = null;
  private offs: (() => void)[] = [];

  constructor(
    private readonly path: string,
    private readonly every: number,
    private readonly query: Query = {},
    /** How it is asked for: `allPages` for lists that may be longer than one. */
    private readonly ask: (path: string, query: Query, signal: AbortSignal) => Promise<T> = get,
  ) {}

  use(): () => void {
    this.users += 1;
    if (this.users === 1) {
      const seen = () => document.visibilityState === 'visible' && void this.refresh();
      document.addEventListener('visibilitychange', seen);
      this.offs = [
        onBack(() => void this.refresh()),
        token.subscribe(() => void this.refresh()),
        () => document.removeEventListener('visibilitychange', seen),
      ];
    }
    let done = false;
    return () => {
      if (done) return;
      done = true;
      this.users -= 1;
      if (this.users > 0) return;
      clearTimeout(this.timer);
      this.abort?.abort();
      for (const off of this.offs) off();
    };
  }

  /** Ask now, and count the time from now. */
  async refresh(): Promise<void> {
    clearTimeout(this.timer);
    this.abort?.abort();
    const abort = new AbortController();
    this.abort = abort;
    try {
      this.data.value = await this.ask(this.path, this.query, abort.signal);
      this.at.value = Date.now();
      this.error.value = null;
    } catch (thrown) {
      if (abort.signal.aborted) return;
      if (thrown instanceof ApiError) this.error.value = thrown.problem;
    }
    if (this.users > 0 && document.visibilityState === 'visible')
      this.timer = setTimeout(() => void this.refresh(), this.every);
  }
}

/** Keep a store current while a component is on the page. */
export function useLive<S extends { use(): () => void }>(store: S): S {
  useEffect(() => store.use(), [store]);
  return store;
}
