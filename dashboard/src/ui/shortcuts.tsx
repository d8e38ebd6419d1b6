/** The sheet of shortcuts behind `?`. */
import { signal } from '@preact/signals';
import { all } from '../lib/keys';
import { Dialog } from './dialog';

const open = signal(false);

export function openSheet(): void {
  open.value = true;
}

const FIXED = [
  ['↑ ↓ j k', 'Walk through a list'],
  ['Enter', 'Open what is marked'],
  ['Esc', 'Close, or empty the search'],
] as const;

export function ShortcutSheet() {
  if (!open.value) return null;
  const rows = [...all().map((one) => [one.keys.replace('mod+', 'Ctrl '), one.what] as const), ...FIXED];
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => (open.value = false)}>
      <dl class="shortcuts">
        {rows.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p class="muted">
        <a href="/ui/licenses.txt" target="_blank" rel="noopener">
          Licences of what this dashboard contains
        </a>
      </p>
    </Dialog>
  );
}
