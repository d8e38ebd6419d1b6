/**
 * A stream of events that is kept open while somebody looks: connected again with backoff, given up when it is silent
 * for too long or the connection was lost (a stream through a proxy may hang for ever without an error), and let go
 * while the tab is hidden, because a browser has six connections for all its tabs.
 */
import { ApiError, failure } from './api';
import { heard, heardFrom, onBack, unheard } from './connection';
import { authorization, token } from './session';
import { SseParser, type SseEvent } from './sse';

const BACKOFF_FIRST_MS = 400;
const BACKOFF_MAX_MS = 8_000;
/** A tab that was hidden for longer lets its streams go. */
const HIDDEN_MS = 20_000;
/** Nobody looks any more; another page may want the same in a moment. */
const LINGER_MS = 12_000;
/** A browser has six connections to a server: two are left for everything that is no stream. */
const OPEN_MAX = 4;

let open = 0;
/** Those nobody looks at, the one that was left first in front: it goes when another needs its place. */
const lingering = new Set<Stream>();

function makeRoom(): void {
  for (const stream of lingering) {
    if (open <= OPEN_MAX) return;
    stream.stop();
  }
}

export interface StreamOptions {
  /** Asked for each connection, so that it can say where to resume. */
  address: () => string;
  /** Without a byte for so long it is given up. A few times what the server promises. */
  silentMs: number;
  onOpen?: () => void;
  /** True: this connection has told everything; open another. Throw an `ApiError` to end it with a problem. */
  onEvent: (event: SseEvent) => boolean;
  /** Null when it works again. True: try again at once. */
  onProblem: (problem: ApiError | null) => boolean;
}

export class Stream {
  private users = 0;
  private abort: AbortController | null = null;
  private linger: ReturnType<typeof setTimeout> | undefined;
  private wake: () => void = () => undefined;

  constructor(private readonly options: StreamOptions) {}

  /** Keep it open until the function that is returned is called. */
  use(): () => void {
    this.users += 1;
    clearTimeout(this.linger);
    lingering.delete(this);
    if (!this.abort) this.start();
    let done = false;
    return () => {
      if (done) return;
      done = true;
      this.users -= 1;
      if (this.users > 0) return;
      lingering.add(this);
      this.linger = setTimeout(() => this.stop(), LINGER_MS);
      makeRoom();
    };
  }

  private start(): void {
    open += 1;
    makeRoom();
    const abort = new AbortController();
    this.abort = abort;
    const wake = () => this.wake();
    const offs = [onBack(wake), token.subscribe(wake)];
    document.addEventListener('visibilitychange', wake);
    abort.signal.addEventListener('abort', () => {
      for (const off of offs) off();
      document.removeEventListener('visibilitychange', wake);
      wake();
    });
    void this.run(abort.signal);
  }

  /** Let it go, although somebody may come back. */
  stop(): void {
    clearTimeout(this.linger);
    lingering.delete(this);
    if (!this.abort) return;
    open -= 1;
    this.abort.abort();
    this.abort = null;
  }

  private async run(signal: AbortSignal): Promise<void> {
    let wait = BACKOFF_FIRST_MS;
    while (!signal.aborted) {
      while (document.visibilityState === 'hidden' && !signal.aborted) await this.pause(60_000);
      try {
        if (await this.connect(signal)) wait = BACKOFF_FIRST_MS;
      } catch (thrown) {
        if (signal.aborted) return;
        if (!(thrown instanceof ApiError)) unheard();
        else if (this.options.onProblem(thrown)) continue;
        else wait = waitAfter(thrown, wait);
      }
      if (signal.aborted) return;
      await this.pause(wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, BACKOFF_MAX_MS);
    }
  }

  /** One connection until it ends; says whether anything came over it. */
  private async connect(signal: AbortSignal): Promise<boolean> {
    const own = new AbortController();
    const off = this.giveUp(own);
    let told = false;
    try {
      const response = await fetch(this.options.address(), {
        headers: { Accept: 'text/event-stream', ...authorization() },
        cache: 'no-store',
        signal: AbortSignal.any([signal, own.signal]),
      });
      heardFrom(response);
      if (!response.ok || !response.body) throw await failure(response);
      this.options.onProblem(null);
      this.options.onOpen?.();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new SseParser();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        heard();
        off.heard();
        for (const event of parser.push(value)) {
          told = true;
          if (this.options.onEvent(event)) return true;
        }
      }
      unheard();
      return told;
    } catch (thrown) {
      if (own.signal.aborted && !signal.aborted) return true;
      throw thrown;
    } finally {
      off.stop();
      own.abort();
    }
  }

  /** Ends a connection that is silent, was open when the server was lost, or that nobody sees. */
  private giveUp(own: AbortController): { heard: () => void; stop: () => void } {
    let last = Date.now();
    let hidden = 0;
    const timer = setInterval(() => {
      const at = Date.now();
      hidden = document.visibilityState === 'hidden' ? hidden || at : 0;
      if (at - last > this.options.silentMs || (hidden > 0 && at - hidden > HIDDEN_MS)) own.abort();
    }, 1_000);
    const offBack = onBack(() => own.abort());
    return {
      heard: () => (last = Date.now()),
      stop: () => {
        clearInterval(timer);
        offBack();
      },
    };
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

/** Asking again for what was refused helps nobody; a new token or another page does. */
function waitAfter(error: ApiError, wait: number): number {
  const refused = error.status >= 400 && error.status < 500 && error.status !== 408 && error.status !== 429;
  return Math.max(refused ? BACKOFF_MAX_MS : wait, error.retryAfter ?? 0);
}
