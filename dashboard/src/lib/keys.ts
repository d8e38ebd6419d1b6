/** Keyboard shortcuts: single keys, and two in a row (`g n`). Nothing happens while somebody types. */

export interface Shortcut {
  /** `?`, `/`, `g n`, `mod+k` (Ctrl, on a Mac Command). */
  keys: string;
  what: string;
  act: () => void;
}

const shortcuts = new Map<string, Shortcut>();
/** The second key of a pair must follow within this. */
const PAIR_MS = 1_200;

let first = '';
let firstAt = 0;

export function register(...list: Shortcut[]): () => void {
  for (const one of list) shortcuts.set(one.keys, one);
  return () => {
    for (const one of list) if (shortcuts.get(one.keys) === one) shortcuts.delete(one.keys);
  };
}

export function all(): Shortcut[] {
  return [...shortcuts.values()];
}

export function startKeys(): void {
  addEventListener('keydown', (event) => {
    const mod = event.ctrlKey || event.metaKey;
    if (mod && !event.altKey && !event.shiftKey) {
      const found = shortcuts.get(`mod+${event.key.toLowerCase()}`);
      if (found) {
        event.preventDefault();
        found.act();
      }
      return;
    }
    if (mod || event.altKey || typing(event.target) || document.querySelector('dialog[open]')) return;
    const pair = Date.now() - firstAt < PAIR_MS ? shortcuts.get(`${first} ${event.key}`) : undefined;
    const found = pair ?? shortcuts.get(event.key);
    first = event.key;
    firstAt = Date.now();
    if (found) {
      event.preventDefault();
      first = '';
      found.act();
    }
  });
}

function typing(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}
