/** A new policy, for some pools. */
import { useSignal } from '@preact/signals';
import { ApiError, FLEET, get, put } from '../../lib/api';
import { nameProblem, NAME_MAX } from '../../lib/resource';
import { policyPut, shapePolicy } from '../../lib/policy';
import { go, href, segment } from '../../lib/router';
import { mayAdminister } from '../../lib/session';
import type { Policy, PolicyList, PolicyPut } from '../../lib/types';
import { PageHead } from '../../ui/basics';
import { Editor } from '../../ui/editor';
import { Field } from '../../ui/field';
import { toast } from '../../ui/toast';
import { NotYours } from '../clusters/create';
import { Backtest } from './backtest';

const START: PolicyPut = {
  description: 'What it is for.',
  pools: ['cluster.pool'],
  rules: [
    {
      name: 'off-the-bus',
      description: 'The GPU does not answer on its bus.',
      condition: 'has(xid.code) && xid.code == 79',
      result: 'unhealthy',
    },
  ],
};

export default function CreatePolicy() {
  const name = useSignal('');
  const wrong = nameProblem(name.value);
  if (!mayAdminister.value) return <NotYours role="Admin" />;
  const path = `${FLEET}/policies/${segment(name.value || 'NAME')}`;
  return (
    <>
      <PageHead title="Write a policy" kicker={<a href={href('/policies')}>Policies</a>} />
      <div class="field-row field-row-narrow">
        <Field label="Name" hint="Lower-case letters, digits and hyphens." problem={wrong}>
          {(control) => <input {...control} type="text" autocomplete="off" spellcheck={false} maxLength={NAME_MAX + 1} placeholder="trainers" value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />}
        </Field>
      </div>
      <Editor<PolicyPut>
        isNew
        depends={name.value}
        label="YAML of the new policy"
        start={{ document: START, revision: null }}
        shape={shapePolicy}
        check={async (_, to) => {
          if (name.value === '' || wrong) throw new ApiError({ title: 'It needs a name', status: 400, detail: wrong ?? 'Give it a name above.' });
          await unknown(name.value);
          return policyPut(await put<Policy>(path, to, { query: { dry_run: true } }));
        }}
        apply={async (_, to) => {
          await unknown(name.value);
          await put<Policy>(path, to);
          toast('It is in force for the next event.');
          go(href(`/policies/${segment(name.value)}`));
        }}
        reload={async () => {
          const theirs = await get<Policy>(path);
          return { document: policyPut(theirs), revision: theirs.revision };
        }}
        equivalent={(_, to) => ({ cli: 'argosy policy apply -f policy.yaml', call: { method: 'PUT', path, body: to } })}
        beside={(value, changed) => changed && <Backtest policy={value} />}
        onCancel={() => go(href('/policies'))}
        applyWord="Put in force"
        note={
          <p class="muted">
            <code>pools</code> are written as nodes carry them: cluster.pool. A pool has one policy.
          </p>
        }
      />
    </>
  );
}

/** Putting would replace a policy of this name without a word. */
async function unknown(name: string): Promise<void> {
  const { items } = await get<PolicyList>(`${FLEET}/policies`);
  if (items.some((one) => one.name === name))
    throw new ApiError({ title: 'There is a policy of this name', status: 400, detail: `${name} is in force already.`, hint: 'Choose another name, or edit that one.' });
}
