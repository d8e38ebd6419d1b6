/** Cordon, uncordon, drain, diagnose, terminate: each with a plan of what it touches, checked by the server first. */
import { signal, useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { asProblem, FLEET, get, idempotencyKey, post, type Problem } from '../../lib/api';
import { shell } from '../../lib/command';
import { duration } from '../../lib/format';
import { segment } from '../../lib/router';
import { mayAct } from '../../lib/session';
import type { BudgetImpact, Command, CommandCreate, Instance, InstanceList, Node } from '../../lib/types';
import { ErrorBox, Text } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Dialog } from '../../ui/dialog';
import { usePaletteActions } from '../../ui/palette';
import { toast } from '../../ui/toast';
import { plan, type Action } from './plan';

const asked = signal<Action | null>(null);

const WORDS: Record<Action, { verb: string; title: string; button: string; done: string; danger?: boolean }> = {
  CORDON: { verb: 'cordon', title: 'Cordon', button: 'Cordon', done: 'is told to take no new work' },
  UNCORDON: { verb: 'uncordon', title: 'Uncordon', button: 'Uncordon', done: 'returns to service' },
  DRAIN: { verb: 'drain', title: 'Drain', button: 'Drain', done: 'is draining' },
  RUN_DIAGNOSTIC: { verb: 'diagnose', title: 'Diagnose', button: 'Run the diagnostic', done: 'runs a diagnostic' },
  TERMINATE: { verb: 'terminate', title: 'Terminate', button: 'Terminate', done: 'is terminated', danger: true },
};

/** Which make sense now; the others would be refused or do nothing. */
function offered(node: Node): Action[] {
  if (node.duty.state === 'Terminated') return [];
  const out = node.duty.state !== 'Active';
  return [
    ...(node.duty.state === 'Active' ? (['CORDON'] as const) : []),
    ...(out ? (['UNCORDON'] as const) : []),
    ...(node.duty.state === 'Draining' ? [] : (['DRAIN'] as const)),
    'RUN_DIAGNOSTIC',
    'TERMINATE',
  ];
}

export function Actions({ node, onDone }: { node: Node; onDone: () => void }) {
  const list = mayAct.value ? offered(node) : [];
  usePaletteActions(
    list.map((action) => ({
      kind: 'Action',
      name: `${WORDS[action].title} ${node.id}…`,
      icon: 'node' as const,
      act: () => (asked.value = action),
      changes: true,
    })),
    [node.id, list.join()],
  );
  useEffect(() => () => void (asked.value = null), [node.id]);
  return (
    <>
      {list.map((action) => (
        <button
          key={action}
          type="button"
          class={`button${WORDS[action].danger ? ' button-danger' : ''}`}
          onClick={() => (asked.value = action)}
        >
          {WORDS[action].title}…
        </button>
      ))}
      {asked.value && <ActionDialog key={asked.value} node={node} action={asked.value} onClose={() => (asked.value = null)} onDone={onDone} />}
    </>
  );
}

const DRAINS = [
  ['900', '15 minutes'],
  ['3600', '1 hour'],
  ['14400', '4 hours'],
  ['86400', '1 day'],
] as const;

const TESTS = [
  ['', 'Whatever the agent thinks right'],
  ['quick', 'Quick'],
  ['memory', 'Memory'],
  ['bandwidth', 'Bandwidth'],
  ['compute', 'Compute'],
  ['stress', 'Stress'],
  ['all', 'All of them'],
] as const;

/** Between two keys, before the server is asked what it thinks. */
const SETTLE_MS = 250;

function ActionDialog({ node, action, onClose, onDone }: { node: Node; action: Action; onClose: () => void; onDone: () => void }) {
  const words = WORDS[action];
  const reason = useSignal('');
  const drainFor = useSignal('3600');
  const force = useSignal(false);
  const test = useSignal('');
  const typed = useSignal('');
  const overBudget = useSignal(false);
  const instance = useSignal<Instance | null>(null);
  const budgets = useSignal<readonly BudgetImpact[]>([]);
  const checked = useSignal<'asking' | 'fine' | Problem>('asking');
  const problem = useSignal<Problem | null>(null);
  const busy = useSignal(false);
  const path = `${FLEET}/nodes/${segment(node.id)}/commands`;

  const parameters: Record<string, string> = {
    ...(action === 'DRAIN' && force.value ? { force: 'true' } : {}),
    ...(action === 'RUN_DIAGNOSTIC' && test.value ? { test: test.value } : {}),
  };
  const body: CommandCreate = {
    type: action,
    ...(reason.value.trim() ? { reason: reason.value.trim() } : {}),
    ...(action === 'DRAIN' ? { drain_for_seconds: Number(drainFor.value) } : {}),
    ...(Object.keys(parameters).length > 0 ? { parameters } : {}),
    ...(overBudget.value ? { over_budget: true } : {}),
  };
  const sent = JSON.stringify(body);
  // One key for what is in the form: a second press after a lost answer does nothing twice.
  const key = useMemo(idempotencyKey, [sent]);

  useEffect(() => {
    const abort = new AbortController();
    void machine(node, abort.signal).then((found) => (instance.value = found));
    return () => abort.abort();
  }, [node.id]);

  useEffect(() => {
    let alive = true;
    // What was fine stays so while it is asked about again: a button that is disabled between press and release
    // swallows the click. The command itself is checked in any case.
    if (checked.peek() !== 'fine') checked.value = 'asking';
    const timer = setTimeout(() => {
      post<Command>(path, JSON.parse(sent), { query: { dry_run: true } }).then(
        (would) => {
          if (!alive) return;
          checked.value = 'fine';
          budgets.value = would.budgets ?? [];
        },
        (thrown: unknown) => {
          // Asked after the command itself, the server says that it is under way already.
          if (!alive || busy.peek()) return;
          const found = asProblem(thrown);
          checked.value = found;
          budgets.value = found.budgets ?? [];
        },
      );
    }, SETTLE_MS);
    return () => {
      alive = false;
      clearTimeout(timer);
    };
  }, [sent]);

  const sure = action !== 'TERMINATE' || typed.value.trim() === node.id;
  const ready = checked.value === 'fine' && sure && !busy.value;
  const act = async (event: Event) => {
    event.preventDefault();
    if (!ready) return;
    busy.value = true;
    problem.value = null;
    try {
      await post<Command>(path, body, { headers: { 'Idempotency-Key': key } });
      toast(`${node.id} ${words.done}.`);
      onDone();
      onClose();
    } catch (thrown) {
      problem.value = asProblem(thrown);
    } finally {
      busy.value = false;
    }
  };
  const blocked = typeof checked.value === 'object' && checked.value.code === OVER_BUDGET;
  const lines = plan(node, action, { instance: instance.value, budgets: budgets.value }, { drainFor: duration(Number(drainFor.value) * 1000), force: force.value });

  return (
    <Dialog
      title={`${words.title} ${node.id}`}
      onClose={onClose}
      wide
      foot={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form="action-form" class={`button ${words.danger ? 'button-danger' : 'button-primary'}`} disabled={!ready}>
            {words.button}
          </button>
        </>
      }
    >
      <form id="action-form" onSubmit={act}>
        <section class="plan" aria-label="Plan">
          <h3>What it will touch</h3>
          <ul>
            {lines.map((line) => (
              <li key={line.text} class={`plan-${MARKS[line.mark]}`}>
                <b aria-hidden="true">{line.mark}</b>
                <Text value={line.text} max={300} />
              </li>
            ))}
          </ul>
          <p class="plan-check" role="status">
            {checked.value === 'asking' ? 'The server is checking…' : checked.value === 'fine' ? 'The server has checked it: it would be accepted.' : ''}
          </p>
        </section>
        {typeof checked.value === 'object' && <ErrorBox problem={checked.value} />}
        <div class="form-row">
          <label class="grow">
            Reason, kept with the command and in the audit log
            <input type="text" maxLength={500} value={reason.value} onInput={(event) => (reason.value = event.currentTarget.value)} />
          </label>
          {action === 'DRAIN' && (
            <label>
              May take
              <select value={drainFor.value} onChange={(event) => (drainFor.value = event.currentTarget.value)}>
                {DRAINS.map(([value, name]) => (
                  <option key={value} value={value}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
          )}
          {action === 'RUN_DIAGNOSTIC' && (
            <label>
              Test
              <select value={test.value} onChange={(event) => (test.value = event.currentTarget.value)}>
                {TESTS.map(([value, name]) => (
                  <option key={value} value={value}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
          )}
        </div>
        {action === 'DRAIN' && (
          <label class="check-row">
            <input type="checkbox" checked={force.value} onChange={(event) => (force.value = event.currentTarget.checked)} /> End what still runs at the deadline
          </label>
        )}
        {(blocked || overBudget.value) && (
          <label class="check-row">
            <input type="checkbox" checked={overBudget.value} onChange={(event) => (overBudget.value = event.currentTarget.checked)} /> Exceed the disruption
            budget: for administrators, with a reason
          </label>
        )}
        {action === 'TERMINATE' && (
          <label>
            Type <code>{node.id}</code> to confirm: this cannot be undone
            <input type="text" autocomplete="off" spellcheck={false} value={typed.value} onInput={(event) => (typed.value = event.currentTarget.value)} />
          </label>
        )}
        <Equivalent cli={cli(node.id, action, body, parameters)} call={{ method: 'POST', path, body }} />
        {problem.value && <ErrorBox problem={problem.value} />}
      </form>
    </Dialog>
  );
}

const OVER_BUDGET = 'HYPERFLEET-CNF-005';

const MARKS = { '+': 'add', '-': 'take', '~': 'change', '=': 'same' } as const;

function cli(id: string, action: Action, body: CommandCreate, parameters: Record<string, string>): string {
  return shell(
    'argosy',
    'node',
    WORDS[action].verb,
    id,
    ...(body.drain_for_seconds ? ['--drain-for', `${body.drain_for_seconds}s`] : []),
    ...(parameters['force'] ? ['--force'] : []),
    ...(parameters['test'] ? ['--test', parameters['test']] : []),
    ...(body.over_budget ? ['--over-budget'] : []),
    ...(body.reason ? ['--reason', body.reason] : []),
  );
}

/** Its machine. What cannot be had is left out of the plan. */
async function machine(node: Node, signal: AbortSignal): Promise<Instance | null> {
  try {
    const found = await get<InstanceList>(`${FLEET}/instances`, { node_id: node.id, size: 1 }, signal);
    return found.items[0] ?? null;
  } catch {
    return null;
  }
}
