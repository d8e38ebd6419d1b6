/** Light, dark, or what the system says; remembered in this browser. */
import { computed, effect, signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'argosy.theme';
const system = signal<'light' | 'dark'>('light');

/** What the person wants. */
export const theme = signal<Theme>('system');

/** What is shown. */
export const shownTheme = computed(() => (theme.value === 'system' ? system.value : theme.value));

/** Follow the system and the person's wish from now on. */
export function startTheme(): void {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const follow = () => (system.value = dark.matches ? 'dark' : 'light');
  follow();
  dark.addEventListener('change', follow);
  theme.value = stored();
  effect(() => {
    document.documentElement.dataset['theme'] = shownTheme.value;
  });
}

export function setTheme(wanted: Theme): void {
  theme.value = wanted;
  try {
    localStorage.setItem(KEY, wanted);
  } catch {
    // Without storage the wish lasts as long as the page.
  }
}

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === 'light' || value === 'dark' ? value : 'system';
  } catch {
    return 'system';
  }
}
