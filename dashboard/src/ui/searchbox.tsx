/** The box above a list. It speaks the API's search language, and plain words; what is typed is in the address. */
import { useSignal } from '@preact/signals';
import { useEffect, useId, useRef } from 'preact/hooks';
import type { Problem } from '../lib/api';
import { register } from '../lib/keys';
import { query, setQuery } from '../lib/router';
import { isLanguage, toSearch } from '../lib/search';
import { Text } from './basics';
import { Icon } from './glyph';

interface Props {
  label: string;
  /** Searched by plain words. */
  fields: readonly string[];
  /** Everything that can be asked for, for the help below the box. */
  known: readonly string[];
  examples: readonly string[];
  problem?: Problem | null;
  parameter?: string;
}

/** Between two keys of somebody who types. */
const SETTLE_MS = 180;

export function SearchBox({ label, fields, known, examples, problem, parameter = 'q' }: Props) {
  const inAddress = query.value.get(parameter) ?? '';
  const typed = useSignal(inAddress);
  const help = useSignal(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();

  useEffect(() => {
    if (document.activeElement !== input.current) typed.value = inAddress;
  }, [inAddress]);
  useEffect(
    () => register({ keys: '/', what: 'Search this list', act: () => input.current?.select() }),
    [],
  );

  const set = (text: string, at: number) => {
    typed.value = text;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ [parameter]: text.trim() }), at);
  };
  const asked = toSearch(typed.value, fields);
  const refused = problem && problem.status === 400;

  return (
    <div class="search">
      <div class={`search-row${refused ? ' search-bad' : ''}`} role="search">
        <Icon name="search" />
        <input
          ref={input}
          type="search"
          aria-label={label}
          aria-invalid={refused ? 'true' : 'false'}
          aria-describedby={refused ? `${id}-error` : undefined}
          placeholder={`Words, or a search such as ${examples[0] ?? ''}`}
          value={typed.value}
          spellcheck={false}
          autocomplete="off"
          maxLength={4096}
          onInput={(event) => set(event.currentTarget.value, SETTLE_MS)}
          onKeyDown={(event) => {
            if (event.key === 'Enter') set(event.currentTarget.value, 0);
            if (event.key === 'Escape') {
              set('', 0);
              event.currentTarget.blur();
            }
          }}
        />
        <button type="button" class="link-button" aria-expanded={help.value} onClick={() => (help.value = !help.value)}>
          {help.value ? 'Hide help' : 'Search help'}
        </button>
      </div>
      {refused && (
        <p class="search-error" id={`${id}-error`} role="alert">
          <Text value={problem.detail} max={400} />
        </p>
      )}
      {help.value && (
        <div class="search-help">
          <p>Try one of these:</p>
          <ul class="search-examples">
            {examples.map((example) => (
              <li key={example}>
                <button type="button" class="chip mono" onClick={() => set(example, 0)}>
                  {example}
                </button>
              </li>
            ))}
          </ul>
          <p>
            Fields: <span class="mono">{known.join(', ')}</span>. Operators: <span class="mono">= != &lt; &lt;= &gt; &gt;=</span>,{' '}
            <span class="mono">like, ilike, in, between, is null, and, or, not</span>. Texts in single quotes.
          </p>
          {asked && !isLanguage(typed.value) && (
            <p>
              Your words are sent as <span class="mono">{asked}</span>
            </p>
          )}
        </div>
      )}
    </div>
  );
}
