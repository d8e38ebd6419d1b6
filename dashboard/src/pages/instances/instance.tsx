/** One machine: what it is, its walk from order to return, and what it costs. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { asProblem, FLEET, get, post, type Problem } from '../../lib/api';
import { shell } from '../../lib/command';
import { now } from '../../lib/connection';
import { money, time } from '../../lib/format';
import { Live, useLive } from '../../lib/live';
import { walk } from '../../lib/money';
import { href, segment } from '../../lib/router';
import { mayAct, mayForce } from '../../lib/session';
import { INSTANCE, lookOf, NODE_STATUS } from '../../lib/states';
import type { Instance, Node } from '../../lib/types';
import type { PageProps } from '../../routes';
import { Age, Badge, Clock, Copy, ErrorBox, Fact, PageHead, Section, Spinner, Text } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Dialog } from '../../ui/dialog';
import { Glyph } from '../../ui/glyph';
import { usePaletteActions } from '../../ui/palette';
import { toast } from '../../ui/toast';
import { Yaml } from '../../ui/yaml';
import { Missing } from '../clusters/cluster';
import { PoolLink } from './list';

const GLYPHS = { done: 'check', now: 'half', ahead: 'ring', bad: 'cross' } as const;
const TONES = { done: 'ok', now: 'move', ahead: 'unknown', bad: 'bad' } as const;

export default function InstancePage({ params }: PageProps) {
  const id = params['id'] ?? '';
  const path = `${FLEET}/instances/${segment(id)}`;
  const store = useLive(useMemo(() => new Live<Instance>(path), [id]));
  const node = useSignal<Node | null>(null);
  const asked = useSignal(false);
  void store.version.value;
  const instance = [...store.items.values()][0];
  useEffect(() => {
    const wanted = instance?.node_id;
    if (!wanted) return undefined;
    const abort = new AbortController();
    get<Node>(`${FLEET}/nodes/${segment(wanted)}`, { fields: 'status,registered_at,duty,health,pool' }, abort.signal)
      .then((found) => (node.value = found))
      .catch(() => (node.value = null));
    return () => abort.abort();
  }, [instance?.node_id, instance?.revision]);
  const over = instance?.state === 'Terminated' || instance?.state === 'Failed' || instance?.state === 'Terminating';
  const returnable = instance !== undefined && !over;
  usePaletteActions(returnable ? [{ kind: 'Action', name: `Return the machine ${id}…`, icon: 'close', act: () => (asked.value = true), changes: true }] : [], [id, returnable]);
  if (!instance) {
    if (store.error.value) return <Missing name={id} what="instance" problem={store.error.value} />;
    return <Spinner what="Reading the instance" />;
  }
  const since = time(instance.ordered_at) ?? now.value;
  const until = over && instance.state !== 'Terminating' ? (time(instance.since) ?? now.value) : now.value;
  const spent = instance.machine_id && instance.cost_per_hour !== undefined ? ((until - since) / 3_600_000) * instance.cost_per_hour : null;
  return (
    <>
      <PageHead
        kicker={
          <>
            <a href={href('/instances')}>Instances</a> / <PoolLink pool={instance.pool} />
          </>
        }
        title={
          <>
            <Text value={instance.id} max={80} mono />
            <Copy text={instance.id} label="Copy the id" />
          </>
        }
        state={<Badge look={lookOf(INSTANCE, instance.state)} />}
        actions={
          mayAct.value &&
          !over && (
            <button type="button" class="button button-danger" onClick={() => (asked.value = true)}>
              Return…
            </button>
          )
        }
      />
      {instance.overdue && (
        <p class="note tone-bad">
          <Glyph name="triangle" />
          <span>
            <strong>It takes longer than it may.</strong> <Text value={instance.status_message} />{' '}
            {instance.retry_at && (
              <>
                Next try <Age at={instance.retry_at} />.
              </>
            )}
          </span>
        </p>
      )}
      <dl class="facts panel">
        <Fact name="Node">
          {instance.node_id ? (
            <>
              <a href={href(`/nodes/${segment(instance.node_id)}`)}>
                <Text value={instance.node_id} max={80} mono />
              </a>{' '}
              {node.value && <Badge look={lookOf(NODE_STATUS, node.value.status)} quiet />}
            </>
          ) : (
            <span class="muted">has not registered</span>
          )}
        </Fact>
        <Fact name="Pool">
          <PoolLink pool={instance.pool} />
        </Fact>
        <Fact name="Machine">
          {instance.machine_id ? (
            <>
              <Text value={instance.machine_id} max={80} mono />
              <Copy text={instance.machine_id} label="Copy the provider's id" />
            </>
          ) : (
            '–'
          )}
        </Fact>
        <Fact name="Place">
          <Text value={`${instance.provider} ${instance.zone ?? instance.region}`} max={80} />
        </Fact>
        <Fact name="Type">
          <Text value={instance.machine_type} max={60} /> {instance.spot && <span class="chip">spot</span>}
        </Fact>
        <Fact name="Cost">{instance.cost_per_hour === undefined ? 'not known' : <span class="num">{money(instance.cost_per_hour)}/h</span>}</Fact>
        <Fact name="Spent so far">{spent === null ? '–' : <span class="num">{money(spent)}</span>}</Fact>
        <Fact name="Ordered">
          <Age at={instance.ordered_at} focusable />
        </Fact>
        {instance.replaces && (
          <Fact name="Replaces">
            <a href={href(`/instances/${segment(instance.replaces)}`)}>
              <Text value={instance.replaces} max={80} mono />
            </a>
          </Fact>
        )}
        {instance.replaced_by && (
          <Fact name="Replaced by">
            <a href={href(`/instances/${segment(instance.replaced_by)}`)}>
              <Text value={instance.replaced_by} max={80} mono />
            </a>
          </Fact>
        )}
        {instance.image && (
          <Fact name="Image">
            <Text value={instance.image} max={120} />
          </Fact>
        )}
      </dl>
      <Section title="Its walk">
        <ol class="walk panel">
          {walk(instance, node.value).map((step, i) => (
            <li key={i} class={`tone-${TONES[step.state]} walk-${step.state}`}>
              <Glyph name={GLYPHS[step.state]} />
              <strong>{step.word}</strong>
              <span class="walk-text">
                <Text value={step.text ?? ''} max={240} />
              </span>
              <span class="walk-time">
                {step.at && (
                  <>
                    <Clock at={step.at} /> <Age at={step.at} />
                  </>
                )}
              </span>
            </li>
          ))}
        </ol>
      </Section>
      {instance.console && (
        <Section title="The end of its console">
          <pre class="console panel" tabIndex={0}>
            <Text value={instance.console} lines max={8_000} />
          </pre>
        </Section>
      )}
      <Section title="As YAML">
        <Yaml value={instance} label={`Instance ${instance.id}`} />
      </Section>
      <Equivalent cli={shell('argosy', 'instance', 'get', instance.id)} call={{ path }} />
      {asked.value && <ReturnDialog instance={instance} path={path} onClose={() => (asked.value = false)} />}
    </>
  );
}

function ReturnDialog({ instance, path, onClose }: { instance: Instance; path: string; onClose: () => void }) {
  const reason = useSignal('');
  const force = useSignal(false);
  const problem = useSignal<Problem | null>(null);
  const busy = useSignal(false);
  const body = { reason: reason.value.trim(), ...(force.value ? { force: true } : {}) };
  const act = async (event: Event) => {
    event.preventDefault();
    if (body.reason === '') return;
    busy.value = true;
    try {
      await post(`${path}/terminate`, body);
      toast('The machine is being returned.');
      onClose();
    } catch (thrown) {
      problem.value = asProblem(thrown);
    } finally {
      busy.value = false;
    }
  };
  return (
    <Dialog
      title={`Return ${instance.id}`}
      onClose={onClose}
      foot={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form="return-form" class="button button-danger" disabled={busy.value || body.reason === ''}>
            Return it
          </button>
        </>
      }
    >
      <form id="return-form" onSubmit={act}>
        <p>
          The machine is returned to <Text value={instance.provider} max={40} />
          {instance.cost_per_hour !== undefined && `, ${money(instance.cost_per_hour)} an hour less`}. {instance.node_id ? 'What still runs on its node is lost: drain the node first if that matters. ' : ''}Its pool buys another one if it then
          has too few.
        </p>
        <label>
          Why
          <input type="text" required maxLength={500} value={reason.value} onInput={(event) => (reason.value = event.currentTarget.value)} />
        </label>
        {mayForce.value && (
          <label class="check">
            <input type="checkbox" checked={force.value} onChange={(event) => (force.value = event.currentTarget.checked)} /> Although it is labelled argosy.dev/protected
          </label>
        )}
        {problem.value && <ErrorBox problem={problem.value} />}
        <Equivalent
          cli={shell('argosy', 'instance', 'terminate', instance.id, '--reason', body.reason || '…', ...(force.value ? ['--force'] : []))}
          call={{ method: 'POST', path: `${path}/terminate`, body: { ...body, reason: body.reason || '…' } }}
        />
      </form>
    </Dialog>
  );
}
