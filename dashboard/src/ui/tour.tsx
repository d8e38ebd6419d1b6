/** Five steps for the first visit to the demo. It never blocks the page, and can be dismissed and restarted. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { go, href, path } from '../lib/router';
import { isDemo } from '../lib/session';
import { Copy } from './basics';
import { Icon } from './glyph';
import { openPalette, usePaletteActions } from './palette';

const KEY = 'argosy.tour';

interface Step {
  title: string;
  text: ComponentChildren;
  /** What it is about: an element with this `data-tour`. */
  target?: string;
}

const INJECT = 'argosy demo inject xid-79';

const STEPS: Step[] = [
  {
    title: 'A fleet that is alive',
    text: 'Every number is live, and a link to what it counts. The machines are simulated; the control plane is the real one.',
    target: 'numbers',
  },
  {
    title: 'Every GPU, one square each',
    text: 'Colour and glyph say its state. Point at one for its measurements, click it for its node. Group and colour it as you like: the address remembers.',
    target: 'map',
  },
  {
    title: 'Break one',
    text: (
      <>
        <p>In another terminal, let a GPU fall off its bus, and watch it be cordoned, drained and replaced:</p>
        <p class="tour-command">
          <code>{INJECT}</code>
          <Copy text={INJECT} label="Copy the command" />
        </p>
      </>
    ),
    target: 'attention',
  },
  {
    title: 'What keeps it safe',
    text: 'What Argosy does by itself is limited by budgets and breakers, always shown here. Pause stops all of it within two seconds, and asks you why.',
    target: 'safety',
  },
  {
    title: 'Ask why',
    text: (
      <>
        Every node can tell its whole story, from the kernel’s line to the action: open one and choose <em>Why</em>. <kbd>Ctrl</kbd> <kbd>K</kbd> goes to
        anything by name, <kbd>?</kbd> shows all shortcuts.
      </>
    ),
  },
];

/** The step that is shown; null while there is no tour. */
const at = signal<number | null>(null);

export function startTour(): void {
  go(href('/'));
  at.value = 0;
}

function seen(): boolean {
  try {
    return localStorage.getItem(KEY) === 'done';
  } catch {
    return true;
  }
}

function end(): void {
  at.value = null;
  try {
    localStorage.setItem(KEY, 'done');
  } catch {
    // Without storage it is offered again; it can be dismissed again.
  }
}

export function Tour() {
  const demo = isDemo.value;
  usePaletteActions(demo ? [{ kind: 'Help', name: 'Start the tour', icon: 'help', act: startTour }] : [], [demo]);
  useEffect(() => {
    if (demo && path.peek() === '/' && !seen()) at.value = 0;
  }, [demo]);

  const step = at.value === null ? undefined : STEPS[at.value];
  useEffect(() => {
    const target = step?.target ? document.querySelector<HTMLElement>(`[data-tour="${step.target}"]`) : null;
    target?.classList.add('tour-target');
    target?.scrollIntoView({ block: 'center', behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
    return () => target?.classList.remove('tour-target');
  }, [step, path.value]);

  if (at.value === null || !step) return null;
  const last = at.value === STEPS.length - 1;
  return (
    <section class="tour" aria-label={`Tour, step ${at.value + 1} of ${STEPS.length}`} aria-live="polite">
      <div class="tour-head">
        <h2>{step.title}</h2>
        <button type="button" class="icon-button" aria-label="Dismiss the tour" onClick={end}>
          <Icon name="close" />
        </button>
      </div>
      <div class="tour-text">{step.text}</div>
      <div class="tour-foot">
        <span class="muted num">
          {at.value + 1} of {STEPS.length}
        </span>
        {at.value > 0 && (
          <button type="button" class="button button-small" onClick={() => (at.value = (at.value ?? 1) - 1)}>
            Back
          </button>
        )}
        {last && (
          <button type="button" class="button button-small" onClick={openPalette}>
            Try Ctrl K
          </button>
        )}
        <button type="button" class="button button-small button-primary" onClick={() => (last ? end() : (at.value = (at.value ?? 0) + 1))}>
          {last ? 'Done' : 'Next'}
        </button>
      </div>
    </section>
  );
}
