/** Deleting a cluster or a node pool: what it will touch, and the name typed before it happens. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { asProblem, del, get, type Problem } from '../../lib/api';
import { shell } from '../../lib/command';
import { count, plural, spend } from '../../lib/format';
import { costs } from '../../lib/money';
import type { Instance, Resource } from '../../lib/types';
import { ErrorBox, Text } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Dialog } from '../../ui/dialog';
import { toast } from '../../ui/toast';
import type { Place } from './edit';

interface Props {
  resource: Resource;
  place: Place;
  pools: readonly Resource[];
  instances: readonly Pick<Instance, 'state' | 'cost_per_hour'>[];
  /** How many machines there are, where not all of them were read. */
  machines?: number;
  onClose: () => void;
}

export function DeleteDialog({ resource, place, pools, instances, machines = instances.length, onClose }: Props) {
  const typed = useSignal('');
  const busy = useSignal(false);
  const problem = useSignal<Problem | null>(null);
  const allowed = useSignal<boolean | null>(null);
  const what = resource.kind === 'Cluster' ? 'cluster' : 'node pool';
  const { cost, unpriced } = costs(instances);
  useEffect(() => {
    del(place.path, { query: { dry_run: true } }).then(
      () => (allowed.value = true),
      (thrown: unknown) => {
        allowed.value = false;
        problem.value = asProblem(thrown);
      },
    );
  }, []);
  const act = async (event: Event) => {
    event.preventDefault();
    if (typed.value !== resource.name) return;
    busy.value = true;
    problem.value = null;
    try {
      // Deleted as it was shown: a spec that somebody changed meanwhile is looked at again.
      const now = await get<Resource>(place.path);
      if (now.generation !== resource.generation) {
        problem.value = { title: 'It was changed meanwhile', status: 409, detail: `It is at generation ${now.generation}, not ${resource.generation}.`, hint: 'Close this, look at it again, and decide again.' };
        return;
      }
      await del(place.path, { headers: { 'If-Match': `"${now.revision}"` } });
      toast(`The ${what} is being deleted. Adapters clean up first.`);
      onClose();
    } catch (thrown) {
      problem.value = asProblem(thrown);
    } finally {
      busy.value = false;
    }
  };
  return (
    <Dialog
      title={`Delete the ${what} ${resource.name}`}
      onClose={onClose}
      foot={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form="delete-form" class="button button-danger" disabled={busy.value || allowed.value === false || typed.value !== resource.name}>
            Delete
          </button>
        </>
      }
    >
      <form id="delete-form" onSubmit={act}>
        <p>This will touch:</p>
        <ul class="touches">
          {resource.kind === 'Cluster' && (
            <li>
              <strong>{plural(pools.length, 'node pool')}</strong>
              {pools.length > 0 && (
                <>
                  : <Text value={pools.map((pool) => pool.name).join(', ')} max={200} />
                </>
              )}
            </li>
          )}
          <li>
            <strong>{plural(machines, 'machine')}</strong>
            {machines > 0 && `, drained and then returned: ${spend(cost, unpriced + machines - instances.length)} an hour less`}
          </li>
          <li>What adapters made for it: each cleans up its part, and the record goes when all have said so.</li>
        </ul>
        <p>{instances.some((one) => one.state === 'Running') ? `Work on ${machines > instances.length ? 'more than ' : ''}${count(instances.filter((one) => one.state === 'Running').length)} running machines gets the time to end that its pool allows (drainFor). ` : ''}There is no way back.</p>
        <label>
          Type the name <strong class="mono">{resource.name}</strong> to confirm
          <input type="text" autocomplete="off" spellcheck={false} value={typed.value} onInput={(event) => (typed.value = event.currentTarget.value)} />
        </label>
        {problem.value && <ErrorBox problem={problem.value} />}
        <Equivalent cli={shell('argosy', place.noun, 'delete', ...place.words, '--yes')} call={{ method: 'DELETE', path: place.path }} />
      </form>
    </Dialog>
  );
}
