/** The safety strip: whether Argosy acts by itself, how much of its budgets is used, and the button that stops it. */
import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { asProblem, del, FLEET, put, type Problem } from '../lib/api';
import { shell } from '../lib/command';
import { href, segment } from '../lib/router';
import { mayAct } from '../lib/session';
import { acting, safety } from '../lib/stores';
import { Age, ErrorBox, Meter, Text } from './basics';
import { Equivalent } from './command';
import { Dialog } from './dialog';
import { Glyph, Icon } from './glyph';
import { usePaletteActions } from './palette';
import { toast } from './toast';

const asked = signal<'pause' | 'resume' | null>(null);

/** Opens the dialog that asks why. */
export function askPause(): void {
  asked.value = 'pause';
}

export function askResume(): void {
  asked.value = 'resume';
}

export function SafetyStrip() {
  useEffect(() => safety.use(), []);
  const state = acting.value;
  const paused = state?.everywhere;
  usePaletteActions(
    [
      paused
        ? { kind: 'Action', name: 'Resume automatic action', icon: 'play', act: askResume, changes: true }
        : { kind: 'Action', name: 'Pause automatic action…', icon: 'pause', act: askPause, changes: true },
    ],
    [paused === undefined],
  );
  if (!state) return <div class="strip" role="region" aria-label="Safety" />;
  const tight = state.tightest && state.tightest.used > 0 ? state.tightest : undefined;
  return (
    <div class="strip" role="region" aria-label="Safety" data-tour="safety">
      <a class="strip-state" href={href('/safety')}>
        <Sentence />
      </a>
      <span class="strip-budgets live">
        {[state.fleet, tight].map(
          (budget) =>
            budget && (
              <a key={budget.scope} class="strip-budget" href={href('/safety')} title={`Out of service by Argosy's own doing: ${budget.used} of ${budget.allowed} allowed`}>
                <span class="strip-scope">
                  <Text value={scopeName(budget.scope)} max={28} brief />
                </span>
                <Meter part={budget.used} whole={budget.allowed} tone={budget.used >= budget.allowed ? 'warn' : 'ok'} label={`${scopeName(budget.scope)} budget: ${budget.used} of ${budget.allowed} used`} />
                <span class="num">
                  {budget.used}/{budget.allowed}
                </span>
              </a>
            ),
        )}
      </span>
      {mayAct.value &&
        (paused ? (
          <button type="button" class="button button-small" aria-label="Resume" onClick={askResume}>
            <Icon name="play" /> <span class="strip-verb">Resume</span>
          </button>
        ) : (
          <button type="button" class="button button-small" aria-label="Pause" onClick={askPause}>
            <Icon name="pause" /> <span class="strip-verb">Pause</span>
          </button>
        ))}
      {asked.value === 'pause' && <PauseDialog onClose={() => (asked.value = null)} />}
      {asked.value === 'resume' && <ResumeDialog onClose={() => (asked.value = null)} />}
    </div>
  );
}

/** The state of automatic action in a few words, the worst first. */
function Sentence() {
  const state = acting.value;
  if (!state) return null;
  if (state.everywhere)
    return (
      <span class="strip-word tone-held">
        <Glyph name="bar" />
        <strong>Paused</strong>
        <span class="strip-reason">
          <Text value={state.everywhere.reason} max={80} brief />
        </span>
        <span class="muted strip-since">
          <Age at={state.everywhere.at} />
        </span>
      </span>
    );
  const breaker = state.breakers[0];
  if (breaker)
    return (
      <span class="strip-word tone-bad">
        <Glyph name="cross" />
        <strong>Breaker open</strong>
        <span class="strip-reason">
          <Text value={scopeName(breaker.scope)} max={30} brief />: <Text value={breaker.reason} max={80} brief />
        </span>
      </span>
    );
  const note = state.isolated ?? state.amnesty;
  if (note)
    return (
      <span class="strip-word tone-warn" title={note}>
        <Glyph name="clock" />
        <strong>{state.isolated ? 'Isolated' : 'Amnesty'}</strong>
        <span class="strip-reason">
          <Text value={note} max={90} brief />
        </span>
      </span>
    );
  if (state.pools.length > 0)
    return (
      <span class="strip-word tone-held">
        <Glyph name="bar" />
        <strong>Paused in {state.pools.length === 1 ? <Text value={state.pools[0]?.pool} max={30} brief /> : `${state.pools.length} pools`}</strong>
      </span>
    );
  return (
    <span class="strip-word tone-ok">
      <Glyph name="check" />
      <strong>Acting by itself</strong>
      <span class="strip-reason">{state.fleet && state.fleet.used > 0 && state.fleet.used >= state.fleet.allowed ? 'the fleet budget is used up' : 'no brake is on'}</span>
    </span>
  );
}

/** `pool/default/atlas.gpus` as people say it. */
export function scopeName(scope: string): string {
  const [kind, ...rest] = scope.split('/');
  if (kind === 'pool') return rest.slice(1).join('/') || rest.join('/');
  if (kind === 'zone') return rest.at(-1) ?? scope;
  return kind === 'fleet' ? 'Fleet' : scope;
}

export function PauseDialog({ onClose, pool }: { onClose: () => void; pool?: string }) {
  const reason = useSignal('');
  const busy = useSignal(false);
  const problem = useSignal<Problem | null>(null);
  const path = `${FLEET}/safety/pause${pool ? `/${segment(pool)}` : ''}`;
  const text = reason.value.trim();
  const act = async (event: Event) => {
    event.preventDefault();
    if (text === '') return;
    busy.value = true;
    try {
      await put(path, { reason: text });
      await safety.refresh();
      toast('Automatic action is paused.');
      onClose();
    } catch (thrown) {
      problem.value = asProblem(thrown);
    } finally {
      busy.value = false;
    }
  };
  return (
    <Dialog
      title={pool ? `Pause automatic action in ${pool}` : 'Pause automatic action'}
      onClose={onClose}
      foot={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form="pause-form" class="button button-primary" disabled={busy.value || text === ''}>
            Pause
          </button>
        </>
      }
    >
      <form id="pause-form" onSubmit={act}>
        <p>
          Within two seconds Argosy stops everything it does to nodes by itself, uncordoning included, until somebody resumes it. It survives restarts.
          Commands of people go on, and a size that people ask for is still bought.
        </p>
        <label>
          Why, for everybody who will see it
          <input
            type="text"
            required
            maxLength={500}
            placeholder="network maintenance until 18:00"
            value={reason.value}
            onInput={(event) => (reason.value = event.currentTarget.value)}
          />
        </label>
        <Equivalent
          cli={shell('argosy', 'pause', ...(pool ? ['--pool', pool] : []), '--reason', text || '…')}
          call={{ method: 'PUT', path, body: { reason: text || '…' } }}
        />
        {problem.value && <ErrorBox problem={problem.value} />}
      </form>
    </Dialog>
  );
}

export function ResumeDialog({ onClose, pool }: { onClose: () => void; pool?: string }) {
  const busy = useSignal(false);
  const problem = useSignal<Problem | null>(null);
  const path = `${FLEET}/safety/pause${pool ? `/${segment(pool)}` : ''}`;
  const pause = safety.data.value?.pauses.find((one) => (one.pool ?? '') === (pool ?? ''));
  const act = async () => {
    busy.value = true;
    try {
      await del(path);
      await safety.refresh();
      toast('Automatic action goes on.');
      onClose();
    } catch (thrown) {
      problem.value = asProblem(thrown);
    } finally {
      busy.value = false;
    }
  };
  return (
    <Dialog
      title="Resume automatic action"
      onClose={onClose}
      foot={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="button" class="button button-primary" disabled={busy.value} onClick={act}>
            Resume
          </button>
        </>
      }
    >
      {pause && (
        <p>
          Paused by <Text value={pause.by} max={80} /> <Age at={pause.at} />: “<Text value={pause.reason} />”
        </p>
      )}
      <p>What is true now is judged anew, inside the budgets. Nothing that waited is done blindly.</p>
      <Equivalent cli={shell('argosy', 'resume', ...(pool ? ['--pool', pool] : []))} call={{ method: 'DELETE', path }} />
      {problem.value && <ErrorBox problem={problem.value} />}
    </Dialog>
  );
}
