/**
 * Lists that keep themselves current. `Live` holds what a watch tells: all there is, then every change, resumed where
 * it broke off, begun anew when the server no longer knows where that was. `Polled` asks every few seconds, for what
 * has no watch. Both rest while nobody looks, and while the tab is hidden: a browser has six connections for all tabs.
 */
import { signal, type Signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { address, ApiError, failure, get, type Problem, type Query } from './api';
import { heard, onBack, unheard } from './connection';
import { authorization, token } from './session';
import { SseParser } from './sse';

const BACKOFF_FIRST_MS = 400;
const BACKOFF_MAX_MS = 8_000;
/** A tab that was hidden for longer lets its streams go and resumes them when it is seen. */
const HIDDEN_MS = 20_000;
/** Nobody looks any more; another page may want the same in a moment. */
const LINGER_MS = 15_000;

export interface Keyed {
  id: string;
}

interface WatchMessage<T> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  revision: number;
  object?: T;
}

export type Change<T> = (id: string, item: T | undefined) => void;

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

export class Live<T extends Keyed> {
  /** Counts changes, at most once a frame: read it to be drawn again. */
  readonly version: Signal<number> = signal(0);
  /** Whether everything was told at least once. */
  readonly ready: Signal<boolean> = signal(false);
  readonly error: Signal<Problem | null> = signal(null);

  private readonly state: WatchState<T>;
  private readonly listeners = new Set<Change<T>>();
  private readonly resets = new Set<() => void>();
  private users = 0;
  private abort: AbortController | null = null;
  private wake: (() => void) | null = null;
  private linger: ReturnType<typeof setTimeout> | undefined;
  private frame = false;

  constructor(
    readonly path: string,
    readonly query: Query = {},
    private readonly keyOf: (item: T) => string = (item) => item.id,
  ) {
    this.state = new WatchState<T>(keyOf);
  }

  get items(): ReadonlyMap<string, T> {
    return this.state.items;
  }

  /** Told of each change, before the frame that draws it. */
  onChange(change: Change<T>, reset: () => void): () => void {
    this.listeners.add(change);
    this.resets.add(reset);
    return () => {
      this.listeners.delete(change);
      this.resets.delete(reset);
    };
  }

  /** Keep current until the function that is returned is called. */
  use(): () => void {
    this.users += 1;
    clearTimeout(this.linger);
    if (!this.abort) this.start();
    let done = false;
    return () => {
      if (done) return;
      done = true;
      this.users -= 1;
      if (this.users === 0) this.linger = setTimeout(() => this.stop(), LINGER_MS);
    };
  }

  /** A value the server gave us in another way, such as the answer to a command. */
  put(item: T): void {
    const key = this.keyOf(item);
    this.state.items.set(key, item);
    this.tell(key, item);
  }

  private start(): void {
    const abort = new AbortController();
    this.abort = abort;
    const offBack = onBack(() => this.wake?.());
    const offToken = token.subscribe(() => this.wake?.());
    abort.signal.addEventListener('abort', () => {
      offBack();
      offToken();
    });
    void this.run(abort.signal);
  }

  private stop(): void {
    this.abort?.abort();
    this.abort = null;
    this.wake?.();
  }

  private async run(signal: AbortSignal): Promise<void> {
    let wait = BACKOFF_FIRST_MS;
    while (!signal.aborted) {
      try {
        const told = await this.stream(signal);
        if (told) wait = BACKOFF_FIRST_MS;
      } catch (thrown) {
        if (signal.aborted) return;
        if (thrown instanceof ApiError) {
          if (thrown.status === 410) {
            this.state.restart();
            continue;
          }
          this.error.value = thrown.problem;
          if (thrown.retryAfter) wait = Math.max(wait, thrown.retryAfter);
          // Asking again for what was refused helps nobody; a new token or a new page does.
          if (thrown.status >= 400 && thrown.status < 500 && thrown.status !== 429 && thrown.status !== 408)
            wait = BACKOFF_MAX_MS;
        } else unheard();
      }
      if (signal.aborted) return;
      await this.pause(wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, BACKOFF_MAX_MS);
    }
  }

  /** One connection until it breaks; says whether anything came. */
  private async stream(signal: AbortSignal): Promise<boolean> {
    await visible(signal);
    const own = new AbortController();
    const off = whenHidden(() => own.abort());
    if (this.state.resume === null) this.state.restart();
    let told = false;
    try {
      const response = await fetch(
        address(this.path, { ...this.query, watch: true, resource_version: this.state.resume }),
        {
          headers: { Accept: 'text/event-stream', ...authorization() },
          cache: 'no-store',
          signal: AbortSignal.any([signal, own.signal]),
        },
      );
      heard();
      if (!response.ok || !response.body) throw await failure(response);
      this.error.value = null;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new SseParser();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        heard();
        for (const event of parser.push(value)) {
          told = true;
          this.take(event.data, event.id);
        }
      }
      unheard();
    } catch (thrown) {
      if (own.signal.aborted && !signal.aborted) return true;
      throw thrown;
    } finally {
      off();
    }
    return told;
  }

  private take(data: string, id: string | null): void {
    const message = JSON.parse(data) as WatchMessage<T>;
    if (message.type === 'ERROR') throw new ApiError(message.object as unknown as Problem);
    const change = this.state.take(message, id);
    if (change === 'all') {
      this.ready.value = true;
      for (const reset of this.resets) reset();
      this.bump();
    } else if (change) this.tell(change.changed, this.state.items.get(change.changed));
  }

  private tell(id: string, item: T | undefined): void {
    for (const listener of this.listeners) listener(id, item);
    this.bump();
  }

  private bump(): void {
    if (this.frame) return;
    this.frame = true;
    requestAnimationFrame(() => {
      this.frame = false;
      this.version.value += 1;
    });
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
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
      this.data.value = await get<T>(this.path, this.query, abort.signal);
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

function whenHidden(act: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = () => {
    clearTimeout(timer);
    if (document.visibilityState === 'hidden') timer = setTimeout(act, HIDDEN_MS);
  };
  document.addEventListener('visibilitychange', look);
  look();
  return () => {
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', look);
  };
}

function visible(signal: AbortSignal): Promise<void> {
  if (document.visibilityState === 'visible') return Promise.resolve();
  return new Promise((resolve) => {
    const look = () => {
      if (document.visibilityState !== 'visible' && !signal.aborted) return;
      document.removeEventListener('visibilitychange', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    signal.addEventListener('abort', look);
  });
}
