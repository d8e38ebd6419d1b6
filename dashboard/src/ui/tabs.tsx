/** Parts of a page, one at a time; which one is in the address. */
import type { ComponentChildren } from 'preact';
import { href, path, query } from '../lib/router';

export interface Tab {
  key: string;
  name: string;
  count?: number;
}

/** The tab that the address names, or the first. */
export function tabOf(tabs: readonly Tab[], parameter = 'tab'): string {
  const wanted = query.value.get(parameter) ?? '';
  return tabs.some((tab) => tab.key === wanted) ? wanted : (tabs[0]?.key ?? '');
}

export function Tabs({ tabs, label, parameter = 'tab', end }: { tabs: readonly Tab[]; label: string; parameter?: string; end?: ComponentChildren }) {
  const here = tabOf(tabs, parameter);
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((tab, i) => (
        <a key={tab.key} href={href(path.value, { [parameter]: i === 0 ? null : tab.key })} {...(tab.key === here ? { 'aria-current': 'page' } : {})}>
          {tab.name}
          {tab.count !== undefined && <span class="num">{tab.count}</span>}
        </a>
      ))}
      {end}
    </nav>
  );
}

/** Choices that exclude each other, as buttons in a row. */
export function Segments<K extends string>({ label, value, options, onChange }: { label: string; value: K; options: readonly (readonly [K, string])[]; onChange: (value: K) => void }) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([key, word]) => (
        <button key={key} type="button" aria-pressed={value === key} onClick={() => onChange(key)}>
          {word}
        </button>
      ))}
    </div>
  );
}
