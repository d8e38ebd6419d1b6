/** Everything that was written down about a node, newest first. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { asProblem, FLEET, get, type Problem } from '../../lib/api';
import { entryLook } from '../../lib/events';
import { query, segment, setQuery } from '../../lib/router';
import { shortUuids } from '../../lib/text';
import type { Ledger, LedgerEntry } from '../../lib/types';
import { Age, Clock, Empty, ErrorBox, Spinner, Text } from '../../ui/basics';
import { Glyph } from '../../ui/glyph';

const FILTERS = ['all', 'event', 'health', 'decision', 'command', 'status'] as const;

/** As long as a page; more comes with the button. */
const PAGE = 100;

export function Timeline({ id, entries, more }: { id: string; entries: readonly LedgerEntry[]; more: number | undefined }) {
  const older = useSignal<LedgerEntry[]>([]);
  const next = useSignal<number | undefined>(more);
  const problem = useSignal<Problem | null>(null);
  const wanted = FILTERS.find((one) => one === query.value.get('type')) ?? 'all';
  useEffect(() => {
    if (older.peek().length === 0) next.value = more;
  }, [more]);

  const load = async () => {
    try {
      const page = await get<Ledger>(`${FLEET}/nodes/${segment(id)}/history`, { before: next.value, limit: PAGE });
      older.value = [...older.value, ...page.items];
      next.value = page.next;
    } catch (thrown) {
      problem.value = asProblem(thrown);
    }
  };
  const seen = new Set<number>();
  const all = [...entries, ...older.value].filter((entry) => !seen.has(entry.sequence) && seen.add(entry.sequence));
  const shown = all.filter((entry) => wanted === 'all' || entry.type === wanted);
  return (
    <>
      <span class="segments timeline-filter" role="group" aria-label="Kinds of entries">
        {FILTERS.map((one) => (
          <button key={one} type="button" aria-pressed={one === wanted} onClick={() => setQuery({ type: one === 'all' ? null : one })}>
            {one}
          </button>
        ))}
      </span>
      {shown.length === 0 ? (
        <Empty title="Nothing of this kind was written down">Look at all kinds, or further back.</Empty>
      ) : (
        <ol class="timeline panel" aria-label="Timeline, newest first">
          {shown.map((entry) => (
            <Entry key={entry.sequence} entry={entry} />
          ))}
        </ol>
      )}
      {problem.value && <ErrorBox problem={problem.value} />}
      {next.value !== undefined && (
        <button type="button" class="button" onClick={load}>
          Further back
        </button>
      )}
    </>
  );
}

export function Entry({ entry }: { entry: LedgerEntry }) {
  const look = entryLook(entry);
  const facts = [
    entry.verdict && `rule ${entry.verdict.rule} of ${entry.verdict.policy} version ${entry.verdict.policy_version}: ${entry.verdict.severity ?? entry.verdict.error ?? ''}`,
    entry.budget && `budget: ${entry.budget}`,
    entry.held_by && `held by ${entry.held_by}`,
    entry.event?.raw,
    ...(entry.verdict?.inputs ?? []),
  ].filter((fact): fact is string => typeof fact === 'string' && fact !== '');
  return (
    <li class={`tone-${look.tone}`}>
      <Clock at={entry.at} />
      <span class="timeline-kind">
        <Glyph name={look.glyph} />
        <Text value={look.word} max={30} brief />
      </span>
      <div>
        <Text value={shortUuids(entry.message)} max={400} />
        {facts.length > 0 && (
          <details>
            <summary>Details</summary>
            <ul class="evidence">
              {facts.map((fact, i) => (
                <li key={i}>
                  <Text value={fact} mono />
                </li>
              ))}
            </ul>
          </details>
        )}
      </div>
      <span class="muted timeline-age">
        <Age at={entry.at} />
      </span>
    </li>
  );
}

export function TimelineOr({ id, ledger, problem }: { id: string; ledger: Ledger | null; problem: Problem | null }) {
  if (!ledger) return problem ? <ErrorBox problem={problem} /> : <Spinner />;
  return <Timeline id={id} entries={ledger.items} more={ledger.next} />;
}
