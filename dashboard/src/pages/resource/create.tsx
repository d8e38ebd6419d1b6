/** The frame of the forms that create something: checked by the server while somebody types. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { asProblem, idempotencyKey, post, type Problem } from '../../lib/api';
import { applyPatch } from '../../lib/change';
import type { Resource } from '../../lib/types';
import { fromYaml, YamlError } from '../../lib/yamlread';
import { ErrorBox } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Glyph } from '../../ui/glyph';

const SETTLE_MS = 350;

export interface Draft {
  name: string;
  labels: Record<string, string>;
  spec: Record<string, unknown>;
}

/** Members of a spec that have no field of their own, as YAML. */
export function readMore(text: string): { spec: Record<string, unknown>; problem: string | null } {
  try {
    const value = fromYaml(text);
    if (value === null) return { spec: {}, problem: null };
    if (typeof value !== 'object' || Array.isArray(value)) return { spec: {}, problem: 'Names and values, as in `capacity: spot`.' };
    return { spec: value as Record<string, unknown>, problem: null };
  } catch (thrown) {
    const at = thrown instanceof YamlError ? `Line ${thrown.line}: ` : '';
    return { spec: {}, problem: at + (thrown instanceof Error ? thrown.message : String(thrown)) };
  }
}

/** The fields' spec with what was written beside them; what has a field of its own is not overwritten. */
export function joinSpec(fields: Record<string, unknown>, more: Record<string, unknown>): Record<string, unknown> {
  return applyPatch(more, fields) as Record<string, unknown>;
}

interface Props {
  path: string;
  draft: Draft;
  /** Complete enough to ask the server. */
  complete: boolean;
  /** Something in the fields is wrong already. */
  wrong: boolean;
  cli: string;
  word: string;
  onProblem: (problem: Problem | null) => void;
  onDone: (made: Resource) => void;
  children: ComponentChildren;
}

export function CreateForm({ path, draft, complete, wrong, cli, word, onProblem, onDone, children }: Props) {
  const state = useSignal<'idle' | 'asking' | 'fine' | 'refused'>('idle');
  const problem = useSignal<Problem | null>(null);
  const busy = useSignal(false);
  // One key for what is in the form: a second press after a lost answer makes nothing twice.
  const key = useRef({ body: '', key: '' });
  const body = JSON.stringify(draft);
  useEffect(() => {
    problem.value = null;
    onProblem(null);
    if (!complete || wrong) {
      state.value = 'idle';
      return undefined;
    }
    state.value = 'asking';
    let alive = true;
    const timer = setTimeout(() => {
      post(path, draft, { query: { dry_run: true } }).then(
        () => alive && (state.value = 'fine'),
        (thrown: unknown) => {
          if (!alive) return;
          state.value = 'refused';
          problem.value = asProblem(thrown);
          onProblem(problem.value);
        },
      );
    }, SETTLE_MS);
    return () => {
      alive = false;
      clearTimeout(timer);
    };
  }, [body, complete, wrong, path]);

  const act = async (event: Event) => {
    event.preventDefault();
    if (!complete || wrong || busy.value) return;
    busy.value = true;
    if (key.current.body !== body) key.current = { body, key: idempotencyKey() };
    try {
      onDone(await post<Resource>(path, draft, { headers: { 'Idempotency-Key': key.current.key } }));
    } catch (thrown) {
      problem.value = asProblem(thrown);
      onProblem(problem.value);
      state.value = 'refused';
    } finally {
      busy.value = false;
    }
  };
  return (
    <form class="create panel" onSubmit={act} noValidate>
      {children}
      <p class="create-state" role="status">
        {state.value === 'fine' ? (
          <span class="tone-ok editor-word">
            <Glyph name="check" /> The server would take it.
          </span>
        ) : state.value === 'refused' ? (
          <span class="tone-bad editor-word">
            <Glyph name="cross" /> The server would refuse it.
          </span>
        ) : (
          <span class="muted">{state.value === 'asking' ? 'Asking the server…' : 'Checked while you type; nothing is written before you press the button.'}</span>
        )}
      </p>
      {problem.value && !(problem.value.errors && problem.value.errors.length > 0 && problem.value.errors.every((one) => /^(?:name|spec\.\w+|labels)/.test(one.field))) && <ErrorBox problem={problem.value} />}
      <Equivalent cli={cli} call={{ method: 'POST', path, body: draft }} />
      <div class="editor-foot">
        <button type="submit" class="button button-primary" disabled={!complete || wrong || busy.value || state.value === 'refused'}>
          {word}
        </button>
      </div>
    </form>
  );
}

/** What the server says about one field. */
export function fieldProblem(problem: Problem | null, ...fields: string[]): string | null {
  if (problem?.code === 'HYPERFLEET-CNF-001' && fields.includes('name')) return problem.detail;
  return problem?.errors?.find((one) => fields.some((field) => one.field === field || one.field.startsWith(`${field}.`) || one.field.startsWith(`${field}[`)))?.message ?? null;
}
