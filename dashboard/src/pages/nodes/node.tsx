/** One node: who it is, what its GPUs do, what happened, what was done about it and why, and what can be done. */
import { useEffect, useMemo } from 'preact/hooks';
import { FLEET } from '../../lib/api';
import { shell } from '../../lib/command';
import { FleetStream } from '../../lib/fleet';
import { bytes, count, money } from '../../lib/format';
import { Live, Polled } from '../../lib/live';
import { href, query, segment, setQuery } from '../../lib/router';
import { text as quoted } from '../../lib/search';
import { COMMAND, HEALTH, LIVENESS, lookOf, NODE_STATUS, SEVERITY } from '../../lib/states';
import { plain, shortUuids } from '../../lib/text';
import type { Command, CommandList, Finding, Instance, InstanceList, Ledger, Node, Why } from '../../lib/types';
import type { PageProps } from '../../routes';
import { Age, Badge, Copy, Empty, ErrorBox, Fact, PageHead, Section, Spinner, Text } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Glyph } from '../../ui/glyph';
import { Table, type Column } from '../../ui/table';
import { Yaml } from '../../ui/yaml';
import { Actions } from './actions';
import { Graphs } from './graphs';
import './node.css';
import { TimelineOr } from './timeline';
import { WhyStory } from './why';

const TABS = ['overview', 'why', 'timeline', 'commands', 'yaml'] as const;
type Tab = (typeof TABS)[number];

/** While nothing changes; a change of the node is asked about at once. */
const SLOW_MS = 15_000;

export default function NodePage({ params }: PageProps) {
  const id = params['id'] ?? '';
  const base = `${FLEET}/nodes/${segment(id)}`;
  const stores = useMemo(
    () => ({
      node: new Live<Node>(base),
      stream: new FleetStream({ search: `id = ${quoted(id)}`, every_ms: 1000 }),
      why: new Polled<Why>(`${base}/why`, SLOW_MS),
      ledger: new Polled<Ledger>(`${base}/history`, SLOW_MS, { limit: 200 }),
      commands: new Polled<CommandList>(`${base}/commands`, SLOW_MS, { size: 100 }),
      // As a list: a node that Argosy did not buy has none, which is no error.
      instances: new Polled<InstanceList>(`${FLEET}/instances`, 60_000, { node_id: id, size: 1 }),
    }),
    [id],
  );
  useEffect(() => {
    const offs = Object.values(stores).map((store) => store.use());
    return () => offs.forEach((off) => off());
  }, [stores]);

  void stores.node.version.value;
  const node = stores.node.items.get(id);
  const instance = stores.instances.data.value?.items[0] ?? null;
  const revision = node?.revision;
  const again = () => {
    void stores.why.refresh();
    void stores.ledger.refresh();
    void stores.commands.refresh();
    void stores.instances.refresh();
  };
  // What is told about the node changes with it. A command's end is not the node's change, so look once more.
  useEffect(() => {
    if (revision === undefined) return undefined;
    again();
    const timer = setTimeout(again, 2_000);
    return () => clearTimeout(timer);
  }, [revision]);

  const problem = stores.node.error.value;
  if (!node) {
    if (problem?.status === 404) return <Missing id={id} />;
    return problem && problem.status !== 0 ? <ErrorBox problem={problem} /> : <Spinner what="Reading the node" />;
  }
  const wanted = query.value.get('tab');
  const tab: Tab = TABS.find((one) => one === wanted) ?? 'overview';
  const counts: Partial<Record<Tab, number>> = { commands: stores.commands.data.value?.total };

  return (
    <>
      <PageHead
        kicker={
          <>
            <a href={href('/nodes')}>Nodes</a>
            {node.pool && (
              <>
                {' / '}
                <a href={href('/nodes', { q: `pool = ${quoted(node.pool)}` })}>
                  <Text value={node.pool} max={80} brief />
                </a>
              </>
            )}
          </>
        }
        title={
          <span class="node-name">
            <Text value={node.id} max={80} mono /> <Copy text={node.id} label="Copy the node's id" />
          </span>
        }
        state={
          <span class="live node-states">
            <Badge look={lookOf(NODE_STATUS, node.status)} />
            <Badge look={lookOf(HEALTH, node.health.status)} />
            {node.duty.state !== 'Terminated' && <Badge look={lookOf(LIVENESS, node.liveness)} />}
          </span>
        }
        actions={<Actions node={node} onDone={again} />}
      />
      {tab !== 'why' && <Lead node={node} why={stores.why.data.value} instance={instance} />}
      <nav class="tabs" aria-label="Parts of this page">
        {TABS.map((one) => (
          <a key={one} href={href(`/nodes/${segment(id)}`, { tab: one === 'overview' ? null : one, gpu: query.value.get('gpu') })} {...(one === tab ? { 'aria-current': 'page' } : {})}>
            {one === 'yaml' ? 'YAML' : one[0]?.toUpperCase() + one.slice(1)}
            {counts[one] !== undefined && <span class="num">{count(counts[one] ?? 0)}</span>}
          </a>
        ))}
      </nav>
      {tab === 'overview' && (
        <Overview node={node} stream={stores.stream} ledger={stores.ledger.data.value} instance={instance} />
      )}
      {tab === 'why' && (stores.why.data.value ? <WhyStory why={stores.why.data.value} /> : stores.why.error.value ? <ErrorBox problem={stores.why.error.value} /> : <Spinner />)}
      {tab === 'timeline' && <TimelineOr id={id} ledger={stores.ledger.data.value} problem={stores.ledger.error.value} />}
      {tab === 'commands' && <Commands list={stores.commands.data.value?.items ?? null} />}
      {tab === 'yaml' && <Yaml value={node} />}
      <div class="page-foot">
        <Equivalent {...equivalent(tab, id, base)} />
      </div>
    </>
  );
}

function equivalent(tab: Tab, id: string, base: string) {
  switch (tab) {
    case 'why':
      return { cli: shell('argosy', 'why', id), call: { path: `${base}/why` } };
    case 'timeline':
      return { cli: shell('argosy', 'node', 'history', id), call: { path: `${base}/history` } };
    case 'commands':
      return { cli: shell('argosy', 'command', 'list', '--node', id), call: { path: `${base}/commands` } };
    case 'yaml':
      return { cli: shell('argosy', 'node', 'get', id, '-o', 'yaml'), call: { path: base } };
    case 'overview':
      return { cli: shell('argosy', 'node', 'get', id), call: { path: base } };
  }
}

function Missing({ id }: { id: string }) {
  return (
    <Empty title="There is no such node">
      <p>
        Nobody registered as <Text value={id} mono max={120} />, or it was forgotten after it was returned.
      </p>
      <p>
        <a href={href('/nodes', { q: id })}>Search the nodes</a>, or look at <a href={href(`/instances/${segment(id)}`)}>the machine of that name</a>: its record is kept longer.
      </p>
    </Empty>
  );
}

/** The one sentence that matters, on every tab. */
function Lead({ node, why, instance }: { node: Node; why: Why | null; instance: Instance | null }) {
  const well = node.status === 'ACTIVE' && node.health.status === 'HEALTHY' && node.liveness === 'Fresh';
  if (well && !node.held) return null;
  const sick = node.health.status !== 'HEALTHY' && node.status !== 'TERMINATED';
  const look = sick ? lookOf(HEALTH, node.health.status) : lookOf(NODE_STATUS, node.status);
  return (
    <div class={`node-lead tone-${look.tone}`}>
      <Glyph name={look.glyph} />
      <div>
        <p>
          <Text value={shortUuids(why?.summary ?? node.health.message ?? node.duty.reason)} />{' '}
          <a href={href(`/nodes/${segment(node.id)}`, { tab: 'why' })}>Read the whole story</a>
        </p>
        {node.held && (
          <p class="muted">
            To {node.held.action} it is due and held by the {node.held.guard}, <Age at={node.held.since} />: <Text value={node.held.reason} />
          </p>
        )}
        {instance?.replaced_by && (
          <p>
            <a href={href(`/nodes/${segment(instance.replaced_by)}`)}>
              <Text value={instance.replaced_by} mono max={80} />
            </a>{' '}
            takes its place.
          </p>
        )}
        {node.duty.state === 'Draining' && node.duty.deadline && (
          <p>
            The drain ends <Age at={node.duty.deadline} focusable />.
          </p>
        )}
      </div>
    </div>
  );
}

function Overview({ node, stream, ledger, instance }: { node: Node; stream: FleetStream; ledger: Ledger | null; instance: Instance | null }) {
  const marks = useMemo(() => (ledger?.items ?? []).filter((entry) => entry.type === 'event' || entry.type === 'decision').slice(0, 60), [ledger]);
  return (
    <div class="node-grid">
      <div class="node-main">
        <Gpus node={node} stream={stream} />
        <Section title="Measurements" aside={<span class="muted">Dashed: events and decisions</span>}>
          <Graphs id={node.id} gpus={node.gpus.length} stream={stream} marks={marks} />
        </Section>
      </div>
      <div class="node-side">
        {node.findings && node.findings.length > 0 && (
          <Section title="Findings">
            <ul class="cards">
              {node.findings.map((finding) => (
                <FindingCard key={finding.key} finding={finding} node={node} />
              ))}
            </ul>
          </Section>
        )}
        <Identity node={node} instance={instance} />
        <Section title="Checks">
          <ul class="checks panel">
            {(node.checks ?? []).map((check) => (
              <li key={check.name}>
                <Badge look={lookOf(HEALTH, check.status)} quiet />
                <strong>
                  <Text value={check.name} max={40} brief />
                </strong>
                <span class="muted">
                  <Text value={check.message} max={160} brief />
                </span>
                <span class="muted">
                  <Age at={check.since} word={false} />
                </span>
              </li>
            ))}
            {!node.checks?.length && <li class="muted">It has not reported yet.</li>}
          </ul>
        </Section>
      </div>
    </div>
  );
}

function FindingCard({ finding, node }: { finding: Finding; node: Node }) {
  const place = node.gpus.find((gpu) => gpu.uuid === finding.gpu)?.index;
  return (
    <li class={`card card-${finding.severity === 'unhealthy' ? 'bad' : 'warn'}`}>
      <p class="finding-head">
        {finding.severity && <Badge look={lookOf(SEVERITY, finding.severity)} quiet />}
        {place !== undefined && <span class="chip num">GPU {place}</span>}
        <span class="muted">
          <Age at={finding.first_seen} />
          {finding.count > 1 && `, ${count(finding.count)} times`}
        </span>
      </p>
      <p>
        <Text value={finding.message} />
      </p>
      {finding.evidence && (
        <p class="evidence">
          <Text value={finding.evidence} mono max={300} />
        </p>
      )}
      <p class="muted">
        Rule <Text value={finding.rule} mono max={60} />
        {finding.policy && (
          <>
            {' of '}
            <a href={href(`/policies/${segment(finding.policy)}`)}>
              <Text value={finding.policy} max={60} />
            </a>
          </>
        )}
        {'. '}
        {finding.ends_at ? <>Ends <Age at={finding.ends_at} />, if nothing like it happens.</> : finding.ends_when ? `Ends when ${finding.ends_when}.` : ''}
      </p>
    </li>
  );
}

function Identity({ node, instance }: { node: Node; instance: Instance | null }) {
  const gpu = node.gpus[0];
  return (
    <Section title="Identity">
      <dl class="panel facts">
        <Fact name="Pool">{node.pool ? <Text value={node.pool} max={80} /> : '–'}</Fact>
        <Fact name="Place">
          <Text value={[node.provider, node.region, node.zone].filter(Boolean).join(' / ') || '–'} max={120} />
        </Fact>
        <Fact name="Machine type">
          <Text value={node.instance_type ?? '–'} max={80} />
        </Fact>
        <Fact name="GPUs">
          {node.gpus.length > 0 ? (
            <>
              {count(node.gpus.length)} × <Text value={gpu?.name ?? 'GPU'} max={80} />
              {gpu?.memory_total !== undefined && <span class="muted"> {bytes(gpu.memory_total)}</span>}
            </>
          ) : (
            'none'
          )}
        </Fact>
        {gpu?.driver_version && (
          <Fact name="Driver, CUDA">
            <Text value={`${gpu.driver_version}, ${gpu.cuda_version ?? '–'}`} max={80} />
          </Fact>
        )}
        <Fact name="Hostname">
          <Text value={node.hostname ?? '–'} max={80} />
        </Fact>
        {node.internal_ip && (
          <Fact name="Address">
            <Text value={node.internal_ip} mono max={60} />
          </Fact>
        )}
        <Fact name="Kernel">
          <Text value={node.kernel_version ?? '–'} max={80} />
        </Fact>
        <Fact name="Agent">
          <Text value={node.agent ?? '–'} max={60} />
          {node.attached ? ', on a stream' : ''}
        </Fact>
        <Fact name="Registered">
          <Age at={node.registered_at} focusable />
        </Fact>
        <Fact name="Duty">
          {node.duty.state}
          {node.duty.since && (
            <span class="muted">
              {' '}
              <Age at={node.duty.since} />
            </span>
          )}
        </Fact>
        {instance && (
          <Fact name="Machine">
            <a href={href(`/instances/${segment(instance.id)}`)}>
              <Text value={instance.machine_id ?? instance.id} mono max={60} />
            </a>
            {instance.cost_per_hour !== undefined && <span class="muted"> {money(instance.cost_per_hour)} an hour</span>}
          </Fact>
        )}
      </dl>
      {node.labels && Object.keys(node.labels).length > 0 && (
        <ul class="labels" aria-label="Labels">
          {Object.entries(node.labels)
            .slice(0, 64)
            .map(([key, value]) => (
              <li key={key}>
                <a class="chip" href={href('/nodes', { q: `labels.${key} = ${quoted(value)}` })}>
                  <Text value={`${key}: ${value}`} max={100} brief />
                </a>
              </li>
            ))}
        </ul>
      )}
    </Section>
  );
}

interface GpuRow {
  index: number;
  uuid: string;
  serial: string;
  temperature: number | null;
  power: number | null;
  utilization: number | null;
  memory: number | null;
  corrected: number | null;
  uncorrected: number | null;
  finding: Finding | undefined;
}

/** The GPUs with what they measure now: from the stream, and until that speaks from the document. */
function Gpus({ node, stream }: { node: Node; stream: FleetStream }) {
  void stream.model.version.value;
  const live = stream.model.nodes.get(node.id);
  if (node.gpus.length === 0) return null;
  const rows: GpuRow[] = node.gpus.map((gpu, i) => ({
    index: gpu.index,
    uuid: gpu.uuid ?? '',
    serial: gpu.serial ?? '',
    temperature: live?.t?.[i] ?? gpu.temperature ?? null,
    power: live?.w?.[i] ?? gpu.power ?? null,
    utilization: live?.u?.[i] ?? gpu.utilization ?? null,
    memory: live?.m?.[i] ?? (gpu.memory_used !== undefined && gpu.memory_total ? (gpu.memory_used / gpu.memory_total) * 100 : null),
    corrected: live?.ce?.[i] ?? null,
    uncorrected: live?.ue?.[i] ?? null,
    finding: worst(node.findings?.filter((finding) => finding.gpu !== undefined && finding.gpu === gpu.uuid)),
  }));
  return (
    <Section title={`${count(rows.length)} × ${plain(node.gpus[0]?.name ?? 'GPU', 80)}`}>
      <Table label="GPUs" columns={GPU_COLUMNS} rows={rows} rowKey={(row) => String(row.index)} parameter="gpusort" />
    </Section>
  );
}

function worst(findings: Finding[] | undefined): Finding | undefined {
  return findings?.find((finding) => finding.severity === 'unhealthy') ?? findings?.[0];
}

function bar(value: number | null, most: number, text: string, hot: number) {
  if (value === null) return <span class="muted">–</span>;
  return (
    <span class={`bar live tone-${value >= hot ? 'warn' : 'ok'}`}>
      <i aria-hidden="true" style={{ width: `${Math.min(100, (value / most) * 100)}%` }} />
      <b>{text}</b>
    </span>
  );
}

const GPU_COLUMNS: Column<GpuRow>[] = [
  { key: 'index', head: 'GPU', width: '56px', cell: (row) => (
      <button type="button" class="link-button" title="Bring it forward in the graphs" onClick={() => setQuery({ gpu: String(row.index) })}>
        {row.index}
      </button>
    ), value: (row) => row.index },
  {
    key: 'health',
    head: 'Health',
    width: '106px',
    cell: (row) => <Badge look={row.finding?.severity ? lookOf(SEVERITY, row.finding.severity) : HEALTH.HEALTHY} quiet {...(row.finding ? { title: row.finding.message } : {})} />,
    value: (row) => row.finding?.severity ?? 'a',
  },
  { key: 'temp', head: 'Temp.', cell: (row) => bar(row.temperature, 100, `${row.temperature} °C`, 85), value: (row) => row.temperature },
  { key: 'power', head: 'Power', hide: 'phone', cell: (row) => bar(row.power, 1000, `${row.power} W`, 2000), value: (row) => row.power },
  { key: 'util', head: 'Utilization', cell: (row) => bar(row.utilization, 100, `${Math.round(row.utilization ?? 0)} %`, 200), value: (row) => row.utilization },
  { key: 'memory', head: 'Memory', hide: 'phone', cell: (row) => bar(row.memory, 100, `${Math.round(row.memory ?? 0)} %`, 200), value: (row) => row.memory },
  { key: 'ecc', head: 'ECC', end: true, hide: 'phone', width: '76px', cell: (row) => <span class="live" title="corrected / not corrected">{row.corrected ?? '–'} / {row.uncorrected ?? '–'}</span>, value: (row) => row.uncorrected },
  { key: 'serial', head: 'Serial', hide: 'tablet', width: '138px', cell: (row) => <span title={row.uuid}><Text value={row.serial || row.uuid} mono max={40} brief /></span>, value: (row) => row.serial },
];

const COMMANDS: Column<Command>[] = [
  { key: 'type', head: 'Command', cell: (row) => <strong>{row.type}</strong>, value: (row) => row.type, width: '150px' },
  { key: 'state', head: 'State', cell: (row) => <Badge look={lookOf(COMMAND, row.state)} />, value: (row) => row.state, width: '124px' },
  { key: 'outcome', head: 'Outcome', cell: (row) => <><Text value={row.outcome ?? '–'} max={40} /> <span class="muted"><Text value={row.message} max={160} /></span></>, value: (row) => row.outcome },
  { key: 'by', head: 'By', hide: 'phone', cell: (row) => <Text value={row.by} max={60} brief />, value: (row) => row.by, width: '14%' },
  { key: 'reason', head: 'Reason', hide: 'phone', cell: (row) => <Text value={shortUuids(row.reason)} max={220} />, width: '34%' },
  { key: 'at', head: 'Issued', end: true, cell: (row) => <Age at={row.issued_at} />, value: (row) => -Date.parse(row.issued_at), width: '110px' },
];

function Commands({ list }: { list: Command[] | null }) {
  if (!list) return <Spinner />;
  return (
    <Table
      label="Commands"
      columns={COMMANDS}
      rows={list}
      rowKey={(row) => row.id}
      order="at"
      loose
      empty={<Empty title="It was never told anything">Commands of people and of Argosy itself are listed here, with what came of them.</Empty>}
    />
  );
}
