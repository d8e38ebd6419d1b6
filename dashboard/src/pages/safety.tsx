/** All brakes: pauses, breakers, budgets. */
import { useSignal } from '@preact/signals';
import { asProblem, del, FLEET, type Problem } from '../lib/api';
import { shell } from '../lib/command';
import { useLive } from '../lib/live';
import { href, segment } from '../lib/router';
import { text as quoted } from '../lib/search';
import { mayAct, mayAdminister } from '../lib/session';
import { safety } from '../lib/stores';
import type { Breaker, BudgetUse } from '../lib/types';
import { Age, Empty, ErrorBox, Meter, PageHead, Section, Spinner, Text } from '../ui/basics';
import { Equivalent } from '../ui/command';
import { Dialog } from '../ui/dialog';
import { Glyph } from '../ui/glyph';
import { RecoverySection } from '../ui/recovery';
import { askPause, ResumeDialog, scopeName } from '../ui/strip';
import { Table, type Column } from '../ui/table';
import { toast } from '../ui/toast';

export default function Safety() {
  useLive(safety);
  const brakes = safety.data.value;
  const closing = useSignal<Breaker | null>(null);
  const resuming = useSignal<string | null>(null);
  if (!brakes) return safety.error.value ? <ErrorBox problem={safety.error.value} /> : <Spinner />;
  return (
    <>
      <PageHead
        title="Safety"
        kicker="What holds Argosy back from acting by itself"
        actions={
          mayAct.value &&
          !brakes.pauses.some((pause) => !pause.pool) && (
            <button type="button" class="button" onClick={askPause}>
              Pause everything…
            </button>
          )
        }
      />
      {[brakes.isolated, brakes.amnesty].map(
        (note) =>
          note && (
            <p key={note} class="note tone-warn">
              <Glyph name="clock" />
              <span>
                <strong>{note === brakes.isolated ? 'Isolated' : 'Amnesty'}:</strong> <Text value={note} />
              </span>
            </p>
          ),
      )}
      <RecoverySection />
      <Section title="Pauses">
        {brakes.pauses.length === 0 ? (
          <Empty title="Nothing is paused">Argosy acts by itself, inside the budgets below.</Empty>
        ) : (
          <ul class="cards">
            {brakes.pauses.map((pause) => (
              <li key={pause.pool ?? ''} class="card card-held">
                <p>
                  <strong>{pause.pool ? <Text value={pause.pool} max={80} /> : 'Everywhere'}</strong>, by <Text value={pause.by} max={80} />{' '}
                  <Age at={pause.at} />
                </p>
                <p>
                  <Text value={pause.reason} />
                </p>
                {mayAct.value && (
                  <button type="button" class="button button-small" onClick={() => (resuming.value = pause.pool ?? '')}>
                    Resume…
                  </button>
                )}
              </li>
            ))}
          </ul>
        )}
      </Section>
      <Section title="Breakers">
        {brakes.breakers.length === 0 ? (
          <Empty title="No breaker is open">One opens when too many nodes of a pool, a zone or the fleet turn bad within five minutes.</Empty>
        ) : (
          <ul class="cards">
            {brakes.breakers.map((breaker) => (
              <li key={breaker.scope} class="card card-bad">
                <p>
                  <Glyph name="cross" /> <strong>{scopeName(breaker.scope)}</strong> opened <Age at={breaker.opened_at} />
                </p>
                <p>
                  <Text value={breaker.reason} />
                </p>
                <p class="muted">
                  {breaker.half_open
                    ? `On trial: ${breaker.half_open.taken} of ${breaker.half_open.allowed} actions taken. A step that ends with actions to spare closes it.`
                    : 'After 15 calm minutes one action is let through, then two, then four.'}
                </p>
                {/* What a zone or the fleet is behind concerns every tenant: for administrators. */}
                {(breaker.scope.startsWith('pool/') ? mayAct.value : mayAdminister.value) && (
                  <button type="button" class="button button-small" onClick={() => (closing.value = breaker)}>
                    Close by hand…
                  </button>
                )}
              </li>
            ))}
          </ul>
        )}
      </Section>
      <Section title="Budgets" aside={<span class="muted">Nodes out of service by Argosy's own doing</span>}>
        <Table label="Budgets" columns={BUDGETS} rows={brakes.budgets} rowKey={(row) => row.scope} order="-used" />
      </Section>
      <Equivalent cli="argosy safety" call={{ path: `${FLEET}/safety` }} />
      {closing.value && <CloseDialog breaker={closing.value} onClose={() => (closing.value = null)} />}
      {resuming.value !== null && (
        <ResumeDialog onClose={() => (resuming.value = null)} {...(resuming.value ? { pool: resuming.value } : {})} />
      )}
    </>
  );
}

const BUDGETS: Column<BudgetUse>[] = [
  { key: 'scope', head: 'Scope', cell: (row) => <ScopeLink scope={row.scope} />, value: (row) => row.scope },
  { key: 'used', head: 'Used', end: true, width: '7ch', cell: (row) => row.used, value: (row) => row.used / Math.max(1, row.allowed) },
  { key: 'out', head: 'Out in all', end: true, width: '11ch', cell: (row) => row.out ?? row.used, value: (row) => row.out ?? row.used },
  { key: 'allowed', head: 'Allowed', end: true, width: '9ch', cell: (row) => row.allowed, value: (row) => row.allowed },
  { key: 'total', head: 'Nodes', end: true, width: '8ch', cell: (row) => row.total, value: (row) => row.total },
  {
    key: 'bar',
    head: 'Share',
    hide: 'phone',
    cell: (row) => (
      <Meter part={row.used} whole={row.allowed} tone={row.used >= row.allowed && row.used > 0 ? 'warn' : 'ok'} label={`${row.used} of ${row.allowed}`} />
    ),
  },
];

function ScopeLink({ scope }: { scope: string }) {
  const [kind] = scope.split('/');
  const name = scopeName(scope);
  const search = kind === 'pool' ? `pool = ${quoted(name)}` : kind === 'zone' ? `zone = ${quoted(name)}` : '';
  return (
    <a href={href('/nodes', { q: search })}>
      <span class="muted">{kind === 'fleet' ? '' : `${kind} `}</span>
      <Text value={name} max={80} brief />
    </a>
  );
}

function CloseDialog({ breaker, onClose }: { breaker: Breaker; onClose: () => void }) {
  const reason = useSignal('');
  const problem = useSignal<Problem | null>(null);
  const path = `${FLEET}/safety/breakers/${segment(breaker.scope)}`;
  const act = async (event: Event) => {
    event.preventDefault();
    try {
      await del(path, { query: { reason: reason.value.trim() } });
      await safety.refresh();
      toast('The breaker is closed. What turns bad from now on counts.');
      onClose();
    } catch (thrown) {
      problem.value = asProblem(thrown);
    }
  };
  return (
    <Dialog
      title={`Close the breaker of ${scopeName(breaker.scope)}`}
      onClose={onClose}
      foot={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form="close-form" class="button button-primary" disabled={reason.value.trim() === ''}>
            Close the breaker
          </button>
        </>
      }
    >
      <form id="close-form" onSubmit={act}>
        <p>
          It opened <Age at={breaker.opened_at} /> because <Text value={breaker.reason} />. Closing it forgives what was; the present is judged anew.
        </p>
        <label>
          Why
          <input type="text" required maxLength={500} value={reason.value} onInput={(event) => (reason.value = event.currentTarget.value)} />
        </label>
        <Equivalent
          cli={shell('argosy', 'safety', 'close', breaker.scope, '--reason', reason.value.trim() || '…')}
          call={{ method: 'DELETE', path, query: { reason: reason.value.trim() || '…' } }}
        />
        {problem.value && <ErrorBox problem={problem.value} />}
      </form>
    </Dialog>
  );
}
