/**
 * A document as YAML that can be changed: checked by the server while it is typed, shown as a difference before it is
 * applied, and rebased when somebody else was faster.
 */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useMemo, useRef } from 'preact/hooks';
import { asProblem, type Problem } from '../lib/api';
import { applyPatch, changedLines, clashes, diffLines, mergePatch, same } from '../lib/change';
import type { Call } from '../lib/command';
import { toYaml } from '../lib/yaml';
import { fromYaml, YamlError } from '../lib/yamlread';
import { ErrorBox, Text } from './basics';
import { Equivalent } from './command';
import { Diff } from './diff';
import { Glyph } from './glyph';

export interface Version<T> {
  document: T;
  /** Its ETag's number; null for what is not there yet. */
  revision: number | null;
}

interface Props<T> {
  label: string;
  start: Version<T>;
  /** What was typed, as what is sent; throws an `Error` with a sentence where it cannot be. */
  shape: (value: unknown) => T;
  /** Ask the server, writing nothing; gives the document as it would be. */
  check: (from: Version<T>, to: T) => Promise<T>;
  apply: (from: Version<T>, to: T) => Promise<void>;
  /** What is there now. */
  reload: () => Promise<Version<T>>;
  equivalent?: (from: T, to: T) => { cli?: string; call?: Call };
  onCancel: () => void;
  applyWord?: string;
  /** More to look at before applying, made from what was typed. */
  beside?: (value: T | null, changed: boolean) => ComponentChildren;
  note?: ComponentChildren;
  /** Nothing is there yet: what it starts with is a suggestion, and all of it is new. */
  isNew?: boolean;
  /** What else the check depends on, such as the name above the editor. */
  depends?: string;
  /** What must be given first; until then the server is not asked. */
  wanting?: string | null;
}

/** Between two keys of somebody who types. */
const SETTLE_MS = 350;
/** A status report moves the revision too; such a conflict is nobody's change and is tried again. */
const QUIET_RETRIES = 4;

interface Conflict<T> {
  theirs: Version<T>;
  paths: string[];
}

export function Editor<T>(props: Props<T>) {
  const base = useSignal(props.start);
  const text = useSignal(useMemo(() => toYaml(props.start.document), []));
  const checked = useSignal<{ text: string; after: T | null; problem: Problem | null } | null>(null);
  const failed = useSignal<Problem | null>(null);
  const conflict = useSignal<Conflict<T> | null>(null);
  const busy = useSignal(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const id = useId();

  const read = useMemo(() => {
    try {
      return { value: props.shape(fromYaml(text.value)), problem: null, line: 0 };
    } catch (thrown) {
      const problem = thrown instanceof Error ? thrown.message : String(thrown);
      return { value: null, problem, line: thrown instanceof YamlError ? thrown.line : 0 };
    }
  }, [text.value]);
  const changed = read.value !== null && (props.isNew === true || !same(read.value, base.value.document));

  // What an answer is about: an answer for another text or another name is none.
  const subject = `${props.depends ?? ''}\n${text.value}`;
  useEffect(() => {
    const { value } = read;
    if (value === null || !changed || props.wanting) return undefined;
    const asked = subject;
    const from = base.value;
    let alive = true;
    const timer = setTimeout(() => {
      props.check(from, value).then(
        (after) => alive && (checked.value = { text: asked, after, problem: null }),
        (thrown: unknown) => {
          if (!alive) return;
          const problem = asProblem(thrown);
          if (problem.status === 409) void moved();
          else checked.value = { text: asked, after: null, problem };
        },
      );
    }, SETTLE_MS);
    return () => {
      alive = false;
      clearTimeout(timer);
    };
  }, [read, base.value, props.depends]);

  /** Somebody was faster: take their revision if they changed nothing of ours, else ask. Says whether to go on. */
  const moved = async (): Promise<boolean> => {
    try {
      const theirs = await props.reload();
      if (same(theirs.document, base.peek().document)) {
        base.value = theirs;
        return true;
      }
      conflict.value = { theirs, paths: clashes(base.peek().document, read.value, theirs.document) };
    } catch (thrown) {
      failed.value = asProblem(thrown);
    }
    return false;
  };

  const apply = async () => {
    if (read.value === null) return;
    busy.value = true;
    failed.value = null;
    for (let tries = 0; ; tries += 1) {
      try {
        await props.apply(base.peek(), read.value);
        break;
      } catch (thrown) {
        const problem = asProblem(thrown);
        if ((problem.status === 409 || problem.status === 412) && tries < QUIET_RETRIES && (await moved())) continue;
        if (!conflict.peek()) failed.value = problem;
        break;
      }
    }
    busy.value = false;
  };

  const rebase = () => {
    const found = conflict.value;
    if (!found || read.value === null) return;
    const mine = mergePatch(base.value.document, read.value);
    base.value = found.theirs;
    text.value = toYaml(applyPatch(found.theirs.document, mine));
    conflict.value = null;
  };
  const takeTheirs = () => {
    const found = conflict.value;
    if (!found) return;
    base.value = found.theirs;
    text.value = toYaml(found.theirs.document);
    conflict.value = null;
  };

  const fresh = checked.value && checked.value.text === subject ? checked.value : null;
  const after = changed && fresh?.after ? fresh.after : null;
  const diff = after ? diffLines(props.isNew ? '' : toYaml(base.value.document), toYaml(after)) : null;
  const differs = diff !== null && (changedLines(diff).added > 0 || changedLines(diff).removed > 0);
  const ready = differs && !conflict.value && !busy.value;

  return (
    <div class="editor">
      <div class="editor-write">
        <label class="visually-hidden" for={id}>
          {props.label}
        </label>
        <textarea
          id={id}
          ref={area}
          class="editor-text mono"
          spellcheck={false}
          autocomplete="off"
          rows={Math.min(36, Math.max(12, text.value.split('\n').length + 1))}
          value={text.value}
          aria-invalid={read.problem ? 'true' : 'false'}
          aria-describedby={`${id}-state`}
          onInput={(event) => (text.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if ((event.ctrlKey || event.metaKey) && event.key === 'Enter' && ready) void apply();
          }}
        />
        <p class="editor-state" id={`${id}-state`} role="status">
          {read.problem !== null ? (
            <span class="tone-bad editor-word">
              <Glyph name="cross" /> {read.line > 0 && `Line ${read.line}: `}
              <Text value={read.problem} max={300} />
            </span>
          ) : !changed ? (
            <span class="muted">Nothing is changed yet. YAML or JSON.</span>
          ) : props.wanting ? (
            <span class="muted">{props.wanting}</span>
          ) : fresh?.problem ? (
            <span class="tone-bad editor-word">
              <Glyph name="cross" /> The server refuses it, see beside.
            </span>
          ) : fresh ? (
            <span class="tone-ok editor-word">
              <Glyph name="check" /> {differs ? 'The server would take it. Nothing is written yet.' : 'The server would take it, and nothing would change.'}
            </span>
          ) : (
            <span class="muted">Asking the server…</span>
          )}
        </p>
      </div>
      <div class="editor-look">
        {conflict.value && (
          <div class="error-box" role="alert">
            <p class="error-title">
              <Glyph name="triangle" /> Somebody else changed it meanwhile
            </p>
            <p>
              {conflict.value.paths.length === 0
                ? 'Your change and theirs are about different things: rebasing keeps both.'
                : 'Both of you changed the same. Rebasing keeps your value there:'}
            </p>
            {conflict.value.paths.length > 0 && (
              <ul>
                {conflict.value.paths.slice(0, 20).map((path) => (
                  <li key={path}>
                    <Text value={path} mono max={120} />
                  </li>
                ))}
              </ul>
            )}
            <Diff label="What they changed" diff={diffLines(toYaml(base.value.document), toYaml(conflict.value.theirs.document))} />
            <p class="error-foot">
              <button type="button" class="button button-primary" onClick={rebase}>
                Rebase my change
              </button>
              <button type="button" class="button" onClick={takeTheirs}>
                Drop mine, take theirs
              </button>
            </p>
          </div>
        )}
        {changed && fresh?.problem && <ErrorBox problem={fresh.problem} />}
        {diff && differs && <Diff label="What would change" diff={diff} />}
        {props.beside?.(read.value, changed)}
        {failed.value && <ErrorBox problem={failed.value} />}
        {props.note}
        {read.value !== null && changed && props.equivalent && <Equivalent {...props.equivalent(base.value.document, read.value)} />}
        <div class="editor-foot">
          <button type="button" class="button" onClick={props.onCancel}>
            Cancel
          </button>
          <button type="button" class="button button-primary" disabled={!ready} onClick={() => void apply()}>
            {props.applyWord ?? 'Apply'}
          </button>
        </div>
      </div>
    </div>
  );
}
