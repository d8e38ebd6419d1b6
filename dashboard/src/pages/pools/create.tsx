/** A new node pool. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { BASE_API, FLEET, get, type Problem } from '../../lib/api';
import { shell } from '../../lib/command';
import { clusters } from '../../lib/declared';
import { money, plural } from '../../lib/format';
import { useLive } from '../../lib/live';
import { NAME_MAX, nameProblem, readLabels, specText } from '../../lib/resource';
import { go, href, query, segment } from '../../lib/router';
import { text } from '../../lib/search';
import { mayAct } from '../../lib/session';
import type { InstanceList } from '../../lib/types';
import { Empty, ErrorBox, PageHead } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Field } from '../../ui/field';
import { toast } from '../../ui/toast';
import { catalog, LabelsField, MoreField, NotYours, setWords } from '../clusters/create';
import { CreateForm, fieldProblem, joinSpec, readMore, type Draft } from '../resource/create';

export default function CreatePool() {
  useLive(catalog);
  useLive(clusters);
  void clusters.version.value;
  const cluster = useSignal(query.peek().get('cluster') ?? '');
  const name = useSignal('');
  const type = useSignal('');
  const nodes = useSignal('1');
  const capacity = useSignal('');
  const labels = useSignal('');
  const more = useSignal('');
  const price = useSignal<number | null>(null);
  const said = useSignal<Problem | null>(null);
  const list = [...clusters.items.values()].sort((a, b) => a.name.localeCompare(b.name));
  const owner = list.find((one) => one.name === cluster.value);
  const provider = owner ? specText(owner, 'provider') : '';
  const types = Object.entries(catalog.data.value?.providers[provider]?.machine_types ?? {}).sort(([, a], [, b]) => (b.gpus ?? 0) - (a.gpus ?? 0));
  const most = catalog.data.value?.nodes_max;
  const size = /^\d+$/.test(nodes.value.trim()) ? Number(nodes.value.trim()) : null;
  const sizeProblem = size === null || size < 1 ? 'A whole number, at least 1.' : most !== undefined && size > most ? `At most ${most} in one pool.` : null;
  const label = useMemo(() => readLabels(labels.value), [labels.value]);
  const rest = useMemo(() => readMore(more.value), [more.value]);
  const wrong = nameProblem(name.value) ?? sizeProblem ?? label.problem ?? rest.problem;
  const draft: Draft = {
    name: name.value,
    labels: label.labels,
    spec: joinSpec({ ...(type.value ? { machineType: type.value } : {}), nodeCount: size ?? 1, ...(capacity.value ? { capacity: capacity.value } : {}) }, rest.spec),
  };
  useEffect(() => {
    price.value = null;
    if (type.value === '') return undefined;
    const abort = new AbortController();
    // What the last machine of this type cost: the API has no list of prices.
    get<InstanceList>(`${FLEET}/instances`, { search: `machine_type = ${text(type.value)} and cost_per_hour > 0`, order: 'ordered_at desc', size: 1 }, abort.signal)
      .then((found) => (price.value = found.items[0]?.cost_per_hour ?? null))
      .catch(() => undefined);
    return () => abort.abort();
  }, [type.value]);
  const cli = shell(
    'argosy', 'nodepool', 'create', name.value || 'NAME', '-c', cluster.value || 'CLUSTER',
    ...(type.value ? ['--machine-type', type.value] : []),
    '--nodes', String(size ?? 1),
    ...(capacity.value ? ['--set', `capacity=${capacity.value}`] : []),
    ...setWords(rest.spec),
    ...Object.entries(label.labels).flatMap(([key, value]) => ['-l', `${key}=${value}`]),
    '--wait',
  );
  if (!mayAct.value) return <NotYours />;
  if (clusters.ready.value && list.length === 0)
    return (
      <Empty title="A node pool lives in a cluster, and there is none yet">
        <a href={href('/create/cluster')}>Create a cluster</a> first:
        <Equivalent cli="argosy cluster create alpha --provider gcp --region us-east1 --wait" />
      </Empty>
    );
  return (
    <>
      <PageHead title="Create a node pool" kicker={<a href={href('/pools')}>Node pools</a>} />
      {catalog.error.value && <ErrorBox problem={catalog.error.value} />}
      <CreateForm
        path={`${BASE_API}/clusters/${segment(cluster.value || '-')}/nodepools`}
        draft={draft}
        complete={name.value !== '' && cluster.value !== ''}
        wrong={wrong !== null}
        cli={cli}
        word="Create the node pool"
        onProblem={(problem) => (said.value = problem)}
        onDone={(made) => {
          toast(`${made.name} is being created.`);
          go(href(`/clusters/${segment(cluster.value)}/pools/${segment(made.name)}`));
        }}
      >
        <div class="field-row">
          <Field label="Cluster">
            {(control) => (
              <select {...control} value={cluster.value} onChange={(event) => ((cluster.value = event.currentTarget.value), (type.value = ''))}>
                <option value="">Choose…</option>
                {list.map((one) => (
                  <option key={one.id} value={one.name}>
                    {one.name} ({specText(one, 'provider')} {specText(one, 'region')})
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Name" hint="Lower-case letters, digits and hyphens." problem={nameProblem(name.value) ?? fieldProblem(said.value, 'name')}>
            {(control) => <input {...control} type="text" autocomplete="off" spellcheck={false} maxLength={NAME_MAX + 1} placeholder="trainers" value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />}
          </Field>
        </div>
        <div class="field-row">
          <Field label="Machine type" hint={price.value === null ? 'Left open: the smallest.' : `${money(price.value)}/h each when one was last bought.`} problem={fieldProblem(said.value, 'spec.machineType', 'spec.machineTypes')}>
            {(control) => (
              <select {...control} value={type.value} disabled={!owner} onChange={(event) => (type.value = event.currentTarget.value)}>
                <option value="">{owner ? 'The smallest' : 'Choose a cluster first'}</option>
                {types.map(([key, one]) => (
                  <option key={key} value={key}>
                    {key}, {one.gpus ? `${plural(one.gpus, 'GPU')}, ` : ''}
                    {plural(one.cpus, 'CPU')}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Nodes" hint={price.value !== null && size !== null ? `About ${money(price.value * size)}/h in all.` : most !== undefined ? `1 to ${most}.` : undefined} problem={sizeProblem ?? fieldProblem(said.value, 'spec.nodeCount')}>
            {(control) => <input {...control} type="number" min={1} step={1} value={nodes.value} onInput={(event) => (nodes.value = event.currentTarget.value)} />}
          </Field>
          <Field label="Capacity" problem={fieldProblem(said.value, 'spec.capacity')}>
            {(control) => (
              <select {...control} value={capacity.value} onChange={(event) => (capacity.value = event.currentTarget.value)}>
                <option value="">On demand</option>
                <option value="spot-preferred">Spot preferred</option>
                <option value="spot">Spot only</option>
              </select>
            )}
          </Field>
        </div>
        <LabelsField value={labels.value} problem={label.problem ?? fieldProblem(said.value, 'labels')} onInput={(value) => (labels.value = value)} />
        <MoreField value={more.value} problem={rest.problem} onInput={(value) => (more.value = value)} placeholder={'remedy: replace\nmaxUnavailable: 10%\nzones: [us-east1-b, us-east1-c]'} />
      </CreateForm>
    </>
  );
}
