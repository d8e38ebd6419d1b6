/** A new policy, for some pools. */
import { useSignal } from '@preact/signals';
import { ApiError, asProblem, FLEET, get, put } from '../../lib/api';
import { nameProblem, NAME_MAX } from '../../lib/resource';
import { policyPut, shapePolicy } from '../../lib/policy';
import { go, href, segment } from '../../lib/router';
import { mayAdminister } from '../../lib/session';
import type { Policy, PolicyPut } from '../../lib/types';
import { PageHead } from '../../ui/basics';
import { Editor } from '../../ui/editor';
import { Field } from '../../ui/field';
import { toast } from '../../ui/toast';
import { NotYours } from '../clusters/create';
import { Backtest } from './backtest';

const ONLY_NEW = { 'If-None-Match': '*' };

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
        wanting={name.value === '' ? 'Give it a name above.' : wrong}
        check={async (_, to) => policyPut(await make(name.value, to, true))}
        apply={async (_, to) => {
          await make(name.value, to, false);
          toast('It is in force for the next event.');
          go(href(`/policies/${segment(name.value)}`));
        }}
        reload={async () => {
          const theirs = await get<Policy>(path);
          return { document: policyPut(theirs), revision: theirs.revision };
        }}
        equivalent={(_, to) => ({ cli: 'argosy policy apply -f policy.yaml', call: { method: 'PUT', path, body: to, headers: ONLY_NEW } })}
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

/** The server makes it only if nobody wrote one of this name: putting would replace it without a word. */
async function make(name: string, policy: PolicyPut, dry: boolean): Promise<Policy> {
  const taken = new ApiError({ title: 'There is a policy of this name', status: 400, detail: `${name} is in force already.`, hint: 'Choose another name, or edit that one.' });
  // The built-in one is in force without having been written.
  if (name === 'default') throw taken;
  try {
    return await put<Policy>(`${FLEET}/policies/${segment(name)}`, policy, { query: dry ? { dry_run: true } : {}, headers: ONLY_NEW });
  } catch (thrown) {
    throw asProblem(thrown).status === 409 ? taken : thrown;
  }
}
