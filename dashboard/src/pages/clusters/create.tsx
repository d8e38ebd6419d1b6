/** A new cluster. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { BASE_API, FLEET, type Problem } from '../../lib/api';
import { leaves } from '../../lib/change';
import { shell } from '../../lib/command';
import { Polled, useLive } from '../../lib/live';
import { NAME_MAX, nameProblem, readLabels } from '../../lib/resource';
import { go, href, segment } from '../../lib/router';
import { mayAct } from '../../lib/session';
import type { Catalog } from '../../lib/types';
import { Empty, ErrorBox, PageHead } from '../../ui/basics';
import { Field } from '../../ui/field';
import { toast } from '../../ui/toast';
import { CreateForm, fieldProblem, joinSpec, readMore, type Draft } from '../resource/create';

/** Changes only with the server's configuration. */
export const catalog = new Polled<Catalog>(`${FLEET}/catalog`, 60_000);

export default function CreateCluster() {
  useLive(catalog);
  const name = useSignal('');
  const provider = useSignal('');
  const region = useSignal('');
  const labels = useSignal('');
  const more = useSignal('');
  const said = useSignal<Problem | null>(null);
  const providers = Object.entries(catalog.data.value?.providers ?? {});
  const chosen = catalog.data.value?.providers[provider.value];
  const regions = chosen?.regions ?? [];
  const label = useMemo(() => readLabels(labels.value), [labels.value]);
  const rest = useMemo(() => readMore(more.value), [more.value]);
  const wrong = nameProblem(name.value) ?? label.problem ?? rest.problem;
  const draft: Draft = {
    name: name.value,
    labels: label.labels,
    spec: joinSpec({ ...(provider.value ? { provider: provider.value } : {}), ...(region.value ? { region: region.value } : {}) }, rest.spec),
  };
  const cli = shell(
    'argosy', 'cluster', 'create', name.value || 'NAME',
    ...(provider.value ? ['--provider', provider.value] : []),
    ...(region.value ? ['--region', region.value] : []),
    ...setWords(rest.spec),
    ...Object.entries(label.labels).flatMap(([key, value]) => ['-l', `${key}=${value}`]),
    '--wait',
  );
  if (!mayAct.value) return <NotYours />;
  return (
    <>
      <PageHead title="Create a cluster" kicker={<a href={href('/clusters')}>Clusters</a>} />
      {catalog.error.value && <ErrorBox problem={catalog.error.value} />}
      <CreateForm
        path={`${BASE_API}/clusters`}
        draft={draft}
        complete={name.value !== '' && provider.value !== '' && region.value !== ''}
        wrong={wrong !== null}
        cli={cli}
        word="Create the cluster"
        onProblem={(problem) => (said.value = problem)}
        onDone={(made) => {
          toast(`${made.name} is being created.`);
          go(href(`/clusters/${segment(made.name)}`));
        }}
      >
        <Field label="Name" hint="Lower-case letters, digits and hyphens." problem={nameProblem(name.value) ?? fieldProblem(said.value, 'name')}>
          {(control) => <input {...control} type="text" autocomplete="off" spellcheck={false} maxLength={NAME_MAX + 1} placeholder="alpha" value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />}
        </Field>
        <div class="field-row">
          <Field label="Provider" problem={fieldProblem(said.value, 'spec.provider')}>
            {(control) => (
              <select
                {...control}
                value={provider.value}
                onChange={(event) => {
                  provider.value = event.currentTarget.value;
                  if (!(catalog.data.value?.providers[provider.value]?.regions ?? []).includes(region.value)) region.value = '';
                }}
              >
                <option value="">Choose…</option>
                {providers.map(([key, one]) => (
                  <option key={key} value={key}>
                    {one.display}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Region" problem={fieldProblem(said.value, 'spec.region')}>
            {(control) => (
              <select {...control} value={region.value} disabled={regions.length === 0} onChange={(event) => (region.value = event.currentTarget.value)}>
                <option value="">{chosen ? 'Choose…' : 'Choose a provider first'}</option>
                {regions.map((one) => (
                  <option key={one} value={one}>
                    {one}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
        <LabelsField value={labels.value} problem={label.problem ?? fieldProblem(said.value, 'labels')} onInput={(text) => (labels.value = text)} />
        <MoreField value={more.value} problem={rest.problem} onInput={(text) => (more.value = text)} placeholder={'release:\n  channel: stable'} />
      </CreateForm>
    </>
  );
}

/** `--set a.b=1` for each leaf. */
export function setWords(spec: Record<string, unknown>): string[] {
  return leaves(spec).flatMap(({ path, value }) => ['--set', `${path}=${typeof value === 'string' ? value : JSON.stringify(value)}`]);
}

export function LabelsField({ value, problem, onInput }: { value: string; problem: string | null; onInput: (text: string) => void }) {
  return (
    <Field label="Labels" hint="As many as you like: team=ml, env=prod" problem={problem}>
      {(control) => <input {...control} type="text" autocomplete="off" spellcheck={false} maxLength={4096} placeholder="team=ml" value={value} onInput={(event) => onInput(event.currentTarget.value)} />}
    </Field>
  );
}

export function MoreField({ value, problem, onInput, placeholder }: { value: string; problem: string | null; onInput: (text: string) => void; placeholder: string }) {
  return (
    <details class="create-more">
      <summary>More of the spec, as YAML</summary>
      <Field label="More of the spec" hint="Kept for the adapters; what Argosy knows itself is checked." problem={problem}>
        {(control) => <textarea {...control} class="mono" rows={6} spellcheck={false} placeholder={placeholder} value={value} onInput={(event) => onInput(event.currentTarget.value)} />}
      </Field>
    </details>
  );
}

export function NotYours({ role = 'Operator' }: { role?: string }) {
  return <Empty title="Your role may look at this, and not change it">Ask somebody with the role {role}, or sign in with another token.</Empty>;
}
