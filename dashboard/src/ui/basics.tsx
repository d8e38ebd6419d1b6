/** The smallest parts: text, badge, age, copy, empty state, error. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { Problem } from '../lib/api';
import { now } from '../lib/connection';
import { ago, clock, fullTime, time } from '../lib/format';
import type { StateLook, Tone } from '../lib/states';
import { clean, TEXT_LEN_HARD_MAX, TEXT_LEN_MAX } from '../lib/text';
import { Glyph, Icon } from './glyph';
import { toast } from './toast';

interface TextProps {
  value: unknown;
  /** Characters before `show all`. */
  max?: number;
  /** Keep line breaks. */
  lines?: boolean;
  /** An ellipsis instead of the button, where there is no room (cells, titles). */
  brief?: boolean;
  mono?: boolean;
}

/** Text from the API. Use it for every text that we did not write ourselves. */
export function Text({ value, max = TEXT_LEN_MAX, lines = false, brief = false, mono = false }: TextProps) {
  const all = useSignal(false);
  const { text, cut } = clean(value, all.value ? TEXT_LEN_HARD_MAX : max, lines);
  const kind = `text${lines ? ' text-lines' : ''}${mono ? ' mono' : ''}`;
  if (cut === 0) return <bdi class={kind}>{text}</bdi>;
  return (
    <bdi class={kind}>
      {text}…
      {!brief && !all.value && (
        <button type="button" class="link-button" onClick={() => (all.value = true)}>
          show all ({cut.toLocaleString('en-US')} more)
        </button>
      )}
    </bdi>
  );
}

/** A state: glyph, word, colour. */
export function Badge({ look, quiet = false, title }: { look: StateLook; quiet?: boolean; title?: string }) {
  return (
    <span class={`badge tone-${look.tone}${quiet ? ' badge-quiet' : ''}`} title={title ?? look.means}>
      <Glyph name={look.glyph} />
      <Text value={look.word} max={40} brief />
    </span>
  );
}

/** How long ago; the absolute time on hover and on focus. */
export function Age({ at, word = true, focusable = false }: { at: string | number | null | undefined; word?: boolean; focusable?: boolean }) {
  const ms = typeof at === 'number' ? at : time(at);
  if (ms === null || ms === undefined) return <span class="muted">–</span>;
  const text = ago(ms, now.value);
  return (
    <time class="age" dateTime={new Date(ms).toISOString()} title={fullTime(ms)} {...(focusable ? { tabIndex: 0 } : {})}>
      {word ? text : text.replace(/ ago$/, '')}
    </time>
  );
}

/** The time of day, for timelines; the full time on hover. */
export function Clock({ at }: { at: string }) {
  const ms = time(at);
  if (ms === null) return null;
  return (
    <time class="clock" dateTime={at} title={fullTime(ms)}>
      {clock(ms, now.peek())}
    </time>
  );
}

export async function copyText(text: string, what = 'Copied'): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(what);
  } catch {
    toast('This browser does not let pages copy here. Select the text instead.', 'warn');
  }
}

export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const done = useSignal(false);
  const act = async () => {
    await copyText(text);
    done.value = true;
    setTimeout(() => (done.value = false), 1500);
  };
  return (
    <button type="button" class="icon-button copy" onClick={act} aria-label={label} title={label}>
      <Icon name={done.value ? 'check' : 'copy'} />
    </button>
  );
}

/** Nothing is there: why that may be, and what to do. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <div class="empty-text">{children}</div>}
    </div>
  );
}

/** What went wrong, why, what to do, and the id that finds it in the server's log. */
export function ErrorBox({ problem, onRetry }: { problem: Problem; onRetry?: () => void }) {
  return (
    <div class="error-box" role="alert">
      <p class="error-title">
        <Glyph name="cross" />
        <Text value={problem.title} max={200} />
        {problem.status > 0 && <span class="muted num">{problem.status}</span>}
      </p>
      <p>
        <Text value={problem.detail} />
      </p>
      {problem.errors && problem.errors.length > 0 && (
        <ul>
          {problem.errors.slice(0, 50).map((error) => (
            <li key={error.field}>
              <Text value={error.field} mono max={120} />: <Text value={error.message} />
              {error.constraint && (
                <span class="muted">
                  {' '}
                  (<Text value={error.constraint} />)
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
      {problem.hint && (
        <p class="error-hint">
          <strong>Next:</strong> <Text value={problem.hint} />
        </p>
      )}
      <p class="error-foot">
        {problem.code && <Text value={problem.code} mono max={60} />}
        {problem.trace_id && (
          <span>
            Request <Text value={problem.trace_id} mono max={80} />
            <Copy text={problem.trace_id} label="Copy the request id" />
          </span>
        )}
        {onRetry && (
          <button type="button" class="button" onClick={onRetry}>
            Try again
          </button>
        )}
      </p>
    </div>
  );
}

/** A thin bar: part of a whole, in the colour of a tone. */
export function Meter({ part, whole, tone, label }: { part: number; whole: number; tone: Tone; label: string }) {
  return (
    <span class={`meter tone-${tone}`} role="img" aria-label={label} title={label}>
      <span class="meter-fill" style={{ width: `${whole > 0 ? Math.min(100, (part / whole) * 100) : 0}%` }} />
    </span>
  );
}

export function Spinner({ what = 'Loading' }: { what?: string }) {
  return (
    <p class="loading" role="status">
      <span class="loading-bar" aria-hidden="true" />
      {what}…
    </p>
  );
}

/** One fact: its name small above its value. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A titled part of a page. */
export function Section({ title, aside, children, id, tour }: { title: string; aside?: ComponentChildren; children: ComponentChildren; id?: string; tour?: string }) {
  return (
    <section class="section" aria-label={title} id={id} data-tour={tour}>
      <div class="section-head">
        <h2>{title}</h2>
        {aside && <div class="section-aside">{aside}</div>}
      </div>
      {children}
    </section>
  );
}

/** The head of a page: what it is, its state, and what can be done. */
export function PageHead({ title, kicker, state, actions }: { title: ComponentChildren; kicker?: ComponentChildren; state?: ComponentChildren; actions?: ComponentChildren }) {
  return (
    <header class="page-head">
      <div class="page-title">
        {kicker && <p class="kicker">{kicker}</p>}
        <h1>
          {title}
          {state}
        </h1>
      </div>
      {actions && <div class="page-actions">{actions}</div>}
    </header>
  );
}
