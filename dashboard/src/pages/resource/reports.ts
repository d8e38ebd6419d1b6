/** What adapters report about one resource, asked for again whenever the resource moves. */
import { useSignal, type Signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { asProblem, get, type Problem } from '../../lib/api';
import type { HistoryEntry, StatusHistory, StatusList } from '../../lib/types';

/** One page of reports: more than a creation takes, and quick to draw. */
const PAGE = 200;
/** Several adapters often report in the same moment. */
const SETTLE_MS = 120;

export interface Reports {
  statuses: Signal<StatusList | null>;
  history: Signal<readonly HistoryEntry[]>;
  problem: Signal<Problem | null>;
  /** Where older ones begin; null where there are none. */
  older: Signal<number | null>;
  loadOlder: () => Promise<void>;
}

/** Reports by their numbers, the newest first. */
export function joinHistory(a: readonly HistoryEntry[], b: readonly HistoryEntry[]): HistoryEntry[] {
  const all = new Map([...a, ...b].map((entry) => [entry.sequence, entry]));
  return [...all.values()].sort((x, y) => y.sequence - x.sequence);
}

export function useReports(path: string, revision: number | undefined): Reports {
  const statuses = useSignal<StatusList | null>(null);
  const history = useSignal<readonly HistoryEntry[]>([]);
  const problem = useSignal<Problem | null>(null);
  const older = useSignal<number | null>(null);
  useEffect(() => {
    if (revision === undefined) return undefined;
    let alive = true;
    const timer = setTimeout(() => {
      Promise.all([get<StatusList>(`${path}/statuses`), get<StatusHistory>(`${path}/statuses/history`, { limit: PAGE })]).then(
        ([now, page]) => {
          if (!alive) return;
          const first = history.peek().length === 0;
          statuses.value = now;
          history.value = joinHistory(history.peek(), page.items);
          if (first) older.value = page.next ?? null;
          problem.value = null;
        },
        (thrown: unknown) => {
          if (alive) problem.value = asProblem(thrown);
        },
      );
    }, SETTLE_MS);
    return () => {
      alive = false;
      clearTimeout(timer);
    };
  }, [path, revision]);
  const loadOlder = async () => {
    if (older.peek() === null) return;
    try {
      const page = await get<StatusHistory>(`${path}/statuses/history`, { limit: PAGE, before: older.peek() });
      history.value = joinHistory(history.peek(), page.items);
      older.value = page.next ?? null;
    } catch (thrown) {
      problem.value = asProblem(thrown);
    }
  };
  return { statuses, history, problem, older, loadOlder };
}
