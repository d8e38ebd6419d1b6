/** One policy: its rules in the order they are asked, what they found, and an editor that tries before it applies. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { asProblem, del, FLEET, get, post, put, type Problem } from '../../lib/api';
import { shell } from '../../lib/command';
import { count, plural } from '../../lib/format';
import { Polled, useLive } from '../../lib/live';
import { askedOrder, hitsOf, policyPut, shapePolicy } from '../../lib/policy';
import { go, href, segment } from '../../lib/router';
import { text } from '../../lib/search';
import { mayAdminister } from '../../lib/session';
import { lookOf, SEVERITY } from '../../lib/states';
import type { Explanation, Policy, PolicyPut, Rule } from '../../lib/types';
import type { PageProps } from '../../routes';
import { Age, Badge, Empty, ErrorBox, PageHead, Section, Spinner, Text } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Dialog } from '../../ui/dialog';
import { Editor } from '../../ui/editor';
import { Field } from '../../ui/field';
import { usePaletteActions } from '../../ui/palette';
import { Table, type Column } from '../../ui/table';
import { tabOf, Tabs } from '../../ui/tabs';
import { toast } from '../../ui/toast';
import { Yaml } from '../../ui/yaml';
import { Missing } from '../clusters/cluster';
import { Backtest } from './backtest';
import { findings } from './list';

const TABS = [
  { key: 'rules', name: 'Rules' },
  { key: 'try', name: 'Try an event' },
  { key: 'edit', name: 'Edit' },
] as const;
const VIEW_TABS = [TABS[0], TABS[1], { key: 'edit', name: 'YAML' }] as const;

export default function PolicyPage({ params }: PageProps) {
  const name = params['policy'] ?? '';
  const path = `${FLEET}/policies/${segment(name)}`;
  const store = useLive(useMemo(() => new Polled<Policy>(path, 10_000), [name]));
  useLive(findings);
  const removing = useSignal(false);
  const policy = store.data.value;
  const hits = useMemo(() => hitsOf(findings.data.value?.items ?? [], name), [findings.data.value, name]);
  const columns = useMemo(() => columnsOf(hits), [hits]);
  usePaletteActions(mayAdminister.value ? [{ kind: 'Action', name: `Edit the policy ${name}…`, icon: 'policy', act: () => go(href(`/policies/${segment(name)}`, { tab: 'edit' })), changes: true }] : [], [name, mayAdminister.value]);
  if (!policy) return store.error.value ? <Missing name={name} what="policy" problem={store.error.value} /> : <Spinner what="Reading the policy" />;
  const tabs = mayAdminister.value ? TABS : VIEW_TABS;
  const tab = tabOf(tabs);
  const builtIn = policy.version === 0;
  const rules = askedOrder(policy.rules);
  const etag = (revision: number | null): Record<string, string> => (revision === null ? {} : { 'If-Match': `"${revision}"` });
  return (
    <>
      <PageHead
        kicker={
          <>
            <a href={href('/policies')}>Policies</a> / {policy.pools && policy.pools.length > 0 ? <>for <Text value={policy.pools.join(', ')} max={120} /></> : 'for every pool without its own'}
          </>
        }
        title={<Text value={policy.name} max={63} />}
        state={<span class="chip">{builtIn ? 'built-in' : `version ${policy.version}`}</span>}
        actions={
          mayAdminister.value &&
          !builtIn && (
            <button type="button" class="button button-danger" onClick={() => (removing.value = true)}>
              {name === 'default' ? 'Back to the built-in one…' : 'Delete…'}
            </button>
          )
        }
      />
      {policy.description && (
        <p class="lead">
          <Text value={policy.description} />
        </p>
      )}
      {!builtIn && (
        <p class="muted">
          Changed <Age at={policy.updated_at} /> by <Text value={policy.updated_by} max={60} />.
        </p>
      )}
      <Tabs tabs={tabs} label="Parts of this page" />
      {tab === 'rules' && (
        <Section title={`${plural(rules.length, 'rule')}, the first that holds decides`} aside={<span class="muted">If none does, the event means nothing.</span>}>
          <Table label="Rules" columns={columns} rows={rules} rowKey={(rule) => rule.name} loose empty={<Empty title="It has no rules">So no event makes a node sick.</Empty>} />
          <div class="page-foot">
            <Equivalent cli={shell('argosy', 'policy', 'get', name)} call={{ path }} />
          </div>
        </Section>
      )}
      {tab === 'try' && <Try name={name} policy={null} />}
      {tab === 'edit' && !mayAdminister.value && <Yaml value={policyPut(policy)} label={`Policy ${name}`} />}
      {tab === 'edit' && mayAdminister.value && (
        <Editor<PolicyPut>
          key={policy.revision}
          label={`YAML of the policy ${name}`}
          start={{ document: policyPut(policy), revision: builtIn ? null : policy.revision }}
          shape={shapePolicy}
          check={async (_, to) => policyPut(await put<Policy>(path, to, { query: { dry_run: true } }))}
          apply={async (from, to) => {
            const made = await put<Policy>(path, to, { headers: etag(from.revision) });
            store.data.value = made;
            toast(`Version ${made.version} is in force for the next event.`);
            go(href(`/policies/${segment(name)}`));
          }}
          reload={async () => {
            const theirs = await get<Policy>(path);
            return { document: policyPut(theirs), revision: theirs.version === 0 ? null : theirs.revision };
          }}
          equivalent={(_, to) => ({ cli: 'argosy policy apply -f policy.yaml', call: { method: 'PUT', path, body: to } })}
          beside={(value, changed) => changed && <Backtest policy={value} />}
          onCancel={() => go(href(`/policies/${segment(name)}`))}
          applyWord="Put in force"
          note={<p class="muted">In force for the next event; what was found before stays until it ends by itself. Conditions are CEL: a wrong one is refused with its place.</p>}
        />
      )}
      {removing.value && <RemoveDialog name={name} path={path} onClose={() => (removing.value = false)} onDone={() => (name === 'default' ? void store.refresh() : go(href('/policies')))} />}
    </>
  );
}

function columnsOf(hits: ReturnType<typeof hitsOf>): Column<Rule>[] {
  const found = (rule: Rule) => hits.get(rule.name);
  return [
    {
      key: 'name',
      head: 'Rule',
      width: '32%',
      cell: (rule) => (
        <>
          <strong>
            <Text value={rule.name} max={80} />
          </strong>
          <span class="rule-what">
            <Text value={rule.description} max={300} />
          </span>
        </>
      ),
    },
    { key: 'result', head: 'Means', width: '128px', cell: (rule) => <Badge look={lookOf(SEVERITY, rule.result)} /> },
    { key: 'condition', head: 'When', hide: 'phone', cell: (rule) => <span class="condition"><Text value={rule.condition} mono lines max={500} /></span> },
    { key: 'lasts', head: 'Lasts', hide: 'tablet', width: '84px', cell: (rule) => <Text value={rule.lasts ?? (rule.result === 'unhealthy' ? 'reboot' : rule.result === 'degraded' ? '1h' : '–')} max={20} /> },
    {
      key: 'hits',
      head: 'Nodes now',
      end: true,
      width: '104px',
      cell: (rule) => {
        const one = found(rule);
        return one ? (
          <a class="live" href={href('/nodes', { q: `rule = ${text(rule.name)}` })} title={`${plural(one.findings, 'finding')}, seen ${count(one.count)} times`}>
            {count(one.nodes)}
          </a>
        ) : (
          <span class="muted">0</span>
        );
      },
    },
  ];
}

const KINDS = ['xid', 'sxid', 'thermal', 'power', 'memory', 'nvlink', 'pcie', 'driver_error', 'ecc_sbe', 'ecc_dbe', 'host', 'unknown'] as const;

/** What the policy in force makes of one event, and why. */
export function Try({ name, policy }: { name: string; policy: PolicyPut | null }) {
  const kind = useSignal<string>('xid');
  const code = useSignal('79');
  const node = useSignal('');
  const problem = useSignal<Problem | null>(null);
  const answer = useSignal<Explanation | null>(null);
  const coded = kind.value === 'xid' || kind.value === 'sxid';
  const body = {
    event: {
      event_type: kind.value,
      gpu_index: 0,
      ...(coded && code.value.trim() ? { metrics: { [`${kind.value}_code`]: Number(code.value) || 0 } } : {}),
      ...(kind.value === 'thermal' && code.value.trim() ? { metrics: { temperature: Number(code.value) || 0 } } : {}),
    },
    ...(node.value.trim() ? { node_id: node.value.trim() } : {}),
    ...(policy ? { policy } : {}),
  };
  const act = async (event: Event) => {
    event.preventDefault();
    problem.value = null;
    answer.value = null;
    try {
      answer.value = await post<Explanation>(`${FLEET}/policies/explain`, body);
    } catch (thrown) {
      problem.value = asProblem(thrown);
    }
  };
  const verdict = answer.value;
  return (
    <form class="create panel" onSubmit={act}>
      <p class="muted">Asks {policy ? 'what you wrote' : `the policies in force (${name} among them)`}; nothing is written, and no node is touched.</p>
      <div class="field-row">
        <Field label="Event">
          {(control) => (
            <select {...control} value={kind.value} onChange={(event) => (kind.value = event.currentTarget.value)}>
              {KINDS.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          )}
        </Field>
        <Field label={coded ? 'Code' : 'Value'} hint={coded ? 'Such as 79, 48, 31.' : kind.value === 'thermal' ? 'Degrees Celsius.' : 'Not used for this kind.'}>
          {(control) => <input {...control} type="number" value={code.value} onInput={(event) => (code.value = event.currentTarget.value)} />}
        </Field>
        <Field label="Node" hint="Left open: a node that nobody knows.">
          {(control) => <input {...control} type="text" autocomplete="off" spellcheck={false} value={node.value} onInput={(event) => (node.value = event.currentTarget.value)} />}
        </Field>
      </div>
      <div class="editor-foot editor-foot-start">
        <button type="submit" class="button button-primary">
          Ask
        </button>
      </div>
      {problem.value && <ErrorBox problem={problem.value} />}
      {verdict && (
        <div class="verdict" role="status">
          <p>
            <Badge look={lookOf(SEVERITY, verdict.severity ?? 'healthy')} /> {verdict.rule ? <>by the rule <strong><Text value={verdict.rule} max={80} /></strong></> : 'no rule holds'} of <Text value={verdict.policy} max={63} />
          </p>
          <p>
            <Text value={verdict.error ?? verdict.message ?? ''} />
          </p>
          {(verdict.inputs ?? []).length > 0 && (
            <ul class="verdict-inputs">
              {(verdict.inputs ?? []).map((input) => (
                <li key={input}>
                  <Text value={input} mono max={200} />
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
      <Equivalent cli={shell('argosy', 'policy', 'explain', ...(kind.value === 'xid' ? ['--xid', code.value || '79'] : ['--event', JSON.stringify(body.event)]), ...(node.value ? ['--node', node.value] : []))} call={{ method: 'POST', path: `${FLEET}/policies/explain`, body }} />
    </form>
  );
}

function RemoveDialog({ name, path, onClose, onDone }: { name: string; path: string; onClose: () => void; onDone: () => void }) {
  const typed = useSignal('');
  const problem = useSignal<Problem | null>(null);
  const act = async (event: Event) => {
    event.preventDefault();
    if (typed.value !== name) return;
    try {
      await del(path);
      toast(name === 'default' ? 'The built-in policy is in force again.' : 'The policy is gone.');
      onDone();
      onClose();
    } catch (thrown) {
      problem.value = asProblem(thrown);
    }
  };
  return (
    <Dialog
      title={name === 'default' ? 'Back to the built-in policy' : `Delete the policy ${name}`}
      onClose={onClose}
      foot={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form="remove-form" class="button button-danger" disabled={typed.value !== name}>
            {name === 'default' ? 'Go back' : 'Delete'}
          </button>
        </>
      }
    >
      <form id="remove-form" onSubmit={act}>
        <p>{name === 'default' ? 'What somebody wrote is forgotten, and the built-in rules judge the next event.' : 'Its pools fall back to the default policy for the next event.'} Keep the YAML if you may want it again.</p>
        <label>
          Type <strong class="mono">{name}</strong> to confirm
          <input type="text" autocomplete="off" spellcheck={false} value={typed.value} onInput={(event) => (typed.value = event.currentTarget.value)} />
        </label>
        {problem.value && <ErrorBox problem={problem.value} />}
        <Equivalent cli={shell('argosy', 'policy', 'delete', name)} call={{ method: 'DELETE', path }} />
      </form>
    </Dialog>
  );
}
