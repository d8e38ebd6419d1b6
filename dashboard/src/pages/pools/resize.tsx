/** Another size for a node pool: what it means, checked by the server before it is done. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { asProblem, get, type Problem } from '../../lib/api';
import { money, plural } from '../../lib/format';
import { specNumber } from '../../lib/resource';
import type { Instance, Resource } from '../../lib/types';
import { ErrorBox } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Dialog } from '../../ui/dialog';
import { toast } from '../../ui/toast';
import { patchCommand, sendPatch, type Place } from '../resource/edit';

interface Props {
  pool: Resource;
  place: Place;
  instances: readonly Instance[];
  onClose: () => void;
  onDone: (now: Resource) => void;
}

export function ResizeDialog({ pool, place, instances, onClose, onDone }: Props) {
  const before = specNumber(pool, 'nodeCount') ?? 1;
  const wanted = useSignal(String(before));
  const busy = useSignal(false);
  const problem = useSignal<Problem | null>(null);
  const size = /^\d+$/.test(wanted.value.trim()) ? Number(wanted.value.trim()) : null;
  const change = { spec: { nodeCount: size ?? before } };
  const prices = instances.map((one) => one.cost_per_hour ?? 0).filter((one) => one > 0);
  const each = prices.length > 0 ? prices.reduce((a, b) => a + b, 0) / prices.length : null;

  useEffect(() => {
    problem.value = null;
    if (size === null || size === before) return undefined;
    const timer = setTimeout(() => {
      sendPatch(place, change, null, true).catch((thrown: unknown) => (problem.value = asProblem(thrown)));
    }, 250);
    return () => clearTimeout(timer);
  }, [size]);

  const act = async (event: Event) => {
    event.preventDefault();
    if (size === null || size === before) return;
    busy.value = true;
    try {
      const now = await get<Resource>(place.path);
      const theirs = specNumber(now, 'nodeCount') ?? 1;
      if (theirs !== before) {
        problem.value = { title: 'Somebody else changed the size', status: 409, detail: `It is ${theirs} now, not ${before}.`, hint: 'Close this and decide again.' };
        return;
      }
      onDone(await sendPatch(place, change, now.revision, false));
      toast(`${pool.name} is to have ${plural(size, 'node')}.`);
      onClose();
    } catch (thrown) {
      problem.value = asProblem(thrown);
    } finally {
      busy.value = false;
    }
  };
  const more = (size ?? before) - before;
  const autoscaled = pool.spec['autoscaling'] !== undefined;
  return (
    <Dialog
      title={`Resize ${pool.name}`}
      onClose={onClose}
      foot={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form="resize-form" class="button button-primary" disabled={busy.value || size === null || more === 0 || problem.value !== null}>
            Resize
          </button>
        </>
      }
    >
      <form id="resize-form" onSubmit={act}>
        <label>
          Nodes (now {before})
          <input type="number" min={1} max={100_000} step={1} value={wanted.value} onInput={(event) => (wanted.value = event.currentTarget.value)} />
        </label>
        <p role="status">
          {size === null
            ? 'A whole number.'
            : more === 0
              ? 'That is its size now.'
              : more > 0
                ? `${plural(more, 'machine')} will be bought${each === null ? '' : `, about ${money(each * more)} an hour more`}.`
                : `${plural(-more, 'node')} will be cordoned, drained for as long as the pool allows, and returned${each === null ? '' : `: about ${money(each * -more)} an hour less`}. Sick and idle ones go first.`}
        </p>
        {autoscaled && <p class="muted">This pool has an autoscaler: the size is where it begins, and it may change it.</p>}
        {problem.value && <ErrorBox problem={problem.value} />}
        <Equivalent cli={patchCommand(place, change)} call={{ method: 'PATCH', path: place.path, body: change }} />
      </form>
    </Dialog>
  );
}
