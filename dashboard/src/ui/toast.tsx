/** Short messages that come and go; read aloud, never the only place where something is said. */
import { signal } from '@preact/signals';
import { Text } from './basics';
import { Icon } from './glyph';

export type ToastTone = 'ok' | 'warn' | 'bad';

interface Toast {
  id: number;
  text: string;
  tone: ToastTone;
}

/** More would cover the page. */
const TOASTS_MAX = 4;
const SHOWN_MS = 5_000;

const toasts = signal<Toast[]>([]);
let last = 0;

export function toast(text: string, tone: ToastTone = 'ok'): void {
  last += 1;
  const id = last;
  toasts.value = [...toasts.value, { id, text, tone }].slice(-TOASTS_MAX);
  setTimeout(() => dismiss(id), tone === 'ok' ? SHOWN_MS : SHOWN_MS * 2);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((one) => (
        <div key={one.id} class={`toast toast-${one.tone}`}>
          <Text value={one.text} max={300} />
          <button type="button" class="icon-button" aria-label="Dismiss" onClick={() => dismiss(one.id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
