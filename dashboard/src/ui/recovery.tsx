/** What waits for a confirmation after the store was restored or lost history: a banner on every page, and a list. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { asProblem, FLEET, post, type Problem } from '../lib/api';
import { shell } from '../lib/command';
import { href, segment } from '../lib/router';
import { mayAct } from '../lib/session';
import { recovery } from '../lib/stores';
import type { Recovery } from '../lib/types';
import { Age, ErrorBox, Section, Text } from './basics';
import { Equivalent } from './command';
import { Dialog } from './dialog';
import { Glyph } from './glyph';
import { toast } from './toast';

export function RecoveryBanner() {
  useEffect(() => recovery.use(), []);
  const list = recovery.data.value;
  if (!list || list.items.length === 0) return null;
  const sum = (of: (item: Recovery) => number) => list.items.reduce((all, item) => all + of(item), 0);
  return (
    <div class="banner" role="alert">
      <Glyph name="clock" />
      <span>
        <strong>{list.items.length === 1 ? '1 node pool is' : `${list.items.length} node pools are`} in recovery</strong>
        {list.incarnation.cause && (
          <>
            : <Text value={list.incarnation.cause} />
          </>
        )}
        . Would be terminated: {sum((item) => item.terminate)}, bought: {sum((item) => item.buy)}.{' '}
        <a href={href('/safety')}>Review and confirm</a>, or <code>argosy recovery show</code>.
      </span>
    </div>
  );
}

export function RecoverySection() {
  const confirming = useSignal<Recovery | null>(null);
  const list = recovery.data.value;
  if (!list || list.items.length === 0) return null;
  return (
    <Section title="Recovery">
      <ul class="cards">
        {list.items.map((item) => (
          <li key={item.pool_id} class="card card-held">
            <p>
              <strong>
                <Text value={item.pool} max={80} />
              </strong>{' '}
              since <Age at={item.since} />: <Text value={item.cause} />
            </p>
            <p>
              Would be terminated: {item.terminate} ({item.drain} drained first). Would be bought: {item.buy}.
              {item.waits_for && (
                <>
                  {' '}
                  Waiting for <Text value={item.waits_for} />.
                </>
              )}
            </p>
            {item.steps.length > 0 && (
              <details>
                <summary>What and why</summary>
                <ul>
                  {item.steps.map((step) => (
                    <li key={`${step.action} ${step.target} ${step.reason}`}>
                      {step.action} <Text value={step.target} max={120} />: <Text value={step.reason} />
                    </li>
                  ))}
                </ul>
              </details>
            )}
            {mayAct.value && (
              <button type="button" class="button button-small" onClick={() => (confirming.value = item)}>
                Confirm…
              </button>
            )}
          </li>
        ))}
      </ul>
      {confirming.value && <ConfirmDialog item={confirming.value} onClose={() => (confirming.value = null)} />}
    </Section>
  );
}

function ConfirmDialog({ item, onClose }: { item: Recovery; onClose: () => void }) {
  const reason = useSignal('');
  const problem = useSignal<Problem | null>(null);
  const path = `${FLEET}/recovery/${segment(item.pool)}/confirm`;
  const act = async (event: Event) => {
    event.preventDefault();
    try {
      await post(path, { reason: reason.value.trim() });
      await recovery.refresh();
      toast('The pool has left recovery.');
      onClose();
    } catch (thrown) {
      problem.value = asProblem(thrown);
    }
  };
  return (
    <Dialog
      title={`Let ${item.pool} go on`}
      onClose={onClose}
      foot={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form="recovery-form" class="button button-primary" disabled={reason.value.trim() === ''}>
            Confirm
          </button>
        </>
      }
    >
      <form id="recovery-form" onSubmit={act}>
        <p>
          Terminated: {item.terminate}, of which {item.drain} are drained first. Bought: {item.buy}.
        </p>
        {item.waits_for && (
          <p>
            That may not be all: it waits for <Text value={item.waits_for} />.
          </p>
        )}
        <label>
          Why
          <input type="text" required maxLength={500} value={reason.value} onInput={(event) => (reason.value = event.currentTarget.value)} />
        </label>
        <Equivalent
          cli={shell('argosy', 'recovery', 'confirm', item.pool, '--reason', reason.value.trim() || '…')}
          call={{ method: 'POST', path, body: { reason: reason.value.trim() || '…' } }}
        />
        {problem.value && <ErrorBox problem={problem.value} />}
      </form>
    </Dialog>
  );
}
