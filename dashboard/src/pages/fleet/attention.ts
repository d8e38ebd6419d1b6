/**
 * What needs somebody's attention, the worst first: what, since when, why, what happens next by itself, and what a
 * person can do. Pure: the page only draws it.
 */
import { shell } from '../../lib/command';
import { duration, plural, time } from '../../lib/format';
import { href, segment } from '../../lib/router';
import type { Tone } from '../../lib/states';
import type { Brakes, Finding, Instance, Node, Provider, Resource } from '../../lib/types';

export interface Attention {
  key: string;
  tone: Tone;
  /** `GPU 3 of gpu-17 is unhealthy`. */
  what: string;
  /** What `what` is about, for the link. */
  link: string;
  since: string;
  why: string;
  /** What Argosy does next by itself; empty where it does nothing. */
  next: string;
  /** What a person would type. */
  command: string;
  /** For the order: higher is worse. */
  weight: number;
}

export interface World {
  nodes: readonly Node[];
  brakes: Brakes | null;
  providers: readonly Provider[];
  /** Clusters and node pools that are not ready. */
  resources: readonly Resource[];
  /** The name of the cluster that a node pool is in: pools of two clusters may share theirs. */
  clusterOf: (pool: Resource) => string;
  /** Machines that were ordered to replace others. */
  replacements: readonly Instance[];
  now: number;
}

export function attention(world: World): Attention[] {
  return [...brakesOf(world), ...world.nodes.flatMap((node) => nodeOf(node, world)), ...providersOf(world), ...resourcesOf(world)].sort(
    (a, b) => b.weight - a.weight || a.since.localeCompare(b.since),
  );
}

function brakesOf({ brakes, now }: World): Attention[] {
  if (!brakes) return [];
  const out: Attention[] = [];
  for (const breaker of brakes.breakers)
    out.push({
      key: `breaker/${breaker.scope}`,
      tone: 'bad',
      what: `The breaker of ${breaker.scope} is open`,
      link: href('/safety'),
      since: breaker.opened_at,
      why: breaker.reason,
      next: breaker.half_open ? `On trial: ${breaker.half_open.taken} of ${breaker.half_open.allowed} actions taken` : calm(breaker.last_bad_at, now),
      command: shell('argosy', 'safety', 'close', breaker.scope, '--reason', '…'),
      weight: 100,
    });
  if (brakes.isolated)
    out.push({
      key: 'isolated',
      tone: 'bad',
      what: 'More than half of the fleet is silent',
      link: href('/nodes', { q: "liveness != 'Fresh'" }),
      since: '',
      why: brakes.isolated,
      next: 'Nobody is marked and nothing is done until the fleet is heard again',
      command: 'argosy safety',
      weight: 99,
    });
  for (const pause of brakes.pauses)
    out.push({
      key: `pause/${pause.pool ?? ''}`,
      tone: 'held',
      what: pause.pool ? `Automatic action is paused in ${pause.pool}` : 'Automatic action is paused everywhere',
      link: href('/safety'),
      since: pause.at,
      why: `${pause.by}: ${pause.reason}`,
      next: 'Nothing until somebody resumes it',
      command: shell('argosy', 'resume', ...(pause.pool ? ['--pool', pause.pool] : [])),
      weight: pause.pool ? 60 : 90,
    });
  return out;
}

/** A breaker is tried after a quarter of an hour without a new bad node. */
const CALM_MS = 15 * 60_000;

function calm(lastBad: string, now: number): string {
  const at = time(lastBad);
  const left = at === null ? 0 : at + CALM_MS - now;
  return left > 0 ? `If it stays calm, one action is tried in ${duration(left)}` : 'One action is tried next';
}

function nodeOf(node: Node, world: World): Attention[] {
  const { health, duty, liveness } = node;
  const silent = liveness === 'Unreachable';
  const sick = health.status === 'UNHEALTHY';
  const out = duty.state === 'Cordoned' || duty.state === 'Draining';
  if (duty.state === 'Terminated' || (!sick && !silent && !out && health.status === 'HEALTHY' && liveness === 'Fresh')) return [];
  const worst = node.findings?.find((finding) => finding.severity === 'unhealthy') ?? node.findings?.[0];
  return [
    {
      key: `node/${node.id}`,
      tone: silent ? 'gone' : sick ? 'bad' : duty.state === 'Draining' ? 'move' : out ? 'held' : 'warn',
      what: whatOf(node, worst),
      link: href(`/nodes/${segment(node.id)}`),
      since: silent ? node.liveness_since : sick || !out ? health.since : (duty.since ?? health.since),
      why: silent ? 'not heard for longer than allowed' : (worst?.message ?? duty.reason ?? health.message ?? ''),
      next: nextOf(node, world),
      command: out && !duty.automatic ? shell('argosy', 'node', 'uncordon', node.id) : shell('argosy', 'why', node.id),
      weight: weightOf(node),
    },
  ];
}

function whatOf(node: Node, worst: Finding | undefined): string {
  const place = worst?.gpu ? node.gpus.find((gpu) => gpu.uuid === worst.gpu)?.index : undefined;
  const who = place === undefined ? node.id : `GPU ${place} of ${node.id}`;
  if (node.liveness === 'Unreachable') return `${node.id} is unreachable`;
  const state = { Draining: 'draining', Cordoned: 'cordoned', Active: 'in service', Terminated: 'terminated' }[node.duty.state];
  if (node.health.status === 'UNHEALTHY') return `${who} is unhealthy; the node is ${state}`;
  if (node.duty.state !== 'Active') return `${node.id} is ${state}${node.duty.automatic ? '' : ` by ${node.duty.by ?? 'a person'}`}`;
  return `${who} is ${node.health.status === 'DEGRADED' ? 'degraded' : node.liveness === 'Suspect' ? 'suspect' : 'unknown'}`;
}

function weightOf(node: Node): number {
  const sick = node.health.status === 'UNHEALTHY';
  if (sick && node.duty.state === 'Active') return 80;
  if (node.held) return 78;
  if (node.liveness === 'Unreachable') return 76;
  if (sick) return 70;
  if (node.duty.state === 'Draining') return 50;
  if (node.duty.state === 'Cordoned') return node.duty.automatic ? 45 : 20;
  return node.health.status === 'DEGRADED' ? 30 : 10;
}

function nextOf(node: Node, world: World): string {
  const { duty, health, held } = node;
  const paused = world.brakes?.pauses.find((pause) => !pause.pool || pause.pool === node.pool);
  if (held) return `To ${held.action} it is due, and held by the ${held.guard}: ${held.reason}`;
  if (paused) return 'Nothing while automatic action is paused';
  const other = world.replacements.find((one) => one.replaces === node.id);
  if (duty.state === 'Draining') {
    const left = (time(duty.deadline) ?? world.now) - world.now;
    const ends = left > 0 ? `Its work may end until its deadline in ${duration(left)}` : 'Its deadline has passed';
    return duty.automatic ? `${ends}; then its machine is returned` : ends;
  }
  if (duty.state === 'Cordoned' && !duty.automatic) return 'Nothing: what a person did, a person undoes';
  if (other && other.state !== 'Running') return `${other.id} is being made to replace it: ${other.status_message}`;
  if (other) return `${other.id} took its place; this one is drained and returned`;
  if (node.liveness === 'Unreachable' && duty.state === 'Active') return 'It is cordoned after five minutes of silence';
  if (health.status === 'UNHEALTHY' || node.liveness === 'Unreachable')
    return duty.state === 'Active' ? 'It is cordoned, inside the budget' : 'Its pool buys a replacement first, then it is drained and returned';
  if (duty.state === 'Cordoned') {
    const until = time(node.flaps?.hold_until);
    return until !== null && until > world.now ? `It returns to service in ${duration(until - world.now)} if it stays well` : 'It returns to service when it is well';
  }
  const ends = time(node.findings?.find((finding) => finding.ends_at)?.ends_at);
  if (ends !== null && ends > world.now) return `Forgotten in ${duration(ends - world.now)} if nothing like it happens`;
  return '';
}

function providersOf({ providers }: World): Attention[] {
  return providers.flatMap((provider): Attention[] => {
    const out: Attention[] = [];
    if (provider.frozen)
      out.push({
        key: `frozen/${provider.name}`,
        tone: 'bad',
        what: `${provider.name}'s listing is not believed`,
        link: href('/instances', { provider: provider.name }),
        since: provider.frozen.since,
        why: provider.frozen.message,
        next: 'Nothing is concluded from it until it is complete again',
        command: shell('argosy', 'provider', 'thaw', provider.name),
        weight: 85,
      });
    if (provider.paused)
      out.push({
        key: `provider/${provider.name}`,
        tone: 'warn',
        what: `${provider.name} does not answer as it should`,
        link: href('/instances', { provider: provider.name }),
        since: provider.paused.since,
        why: provider.paused.message,
        next: 'it is tried again',
        command: 'argosy provider list',
        weight: 65,
      });
    if (provider.orphans > 0)
      out.push({
        key: `orphans/${provider.name}`,
        tone: 'warn',
        what: `${plural(provider.orphans, 'machine')} at ${provider.name} that no record knows`,
        link: href('/instances', { view: 'orphans' }),
        since: provider.listed_at ?? '',
        why: 'They carry our tags and cost money',
        next: '',
        command: 'argosy instance list --orphans',
        weight: 40,
      });
    return out;
  });
}

function resourcesOf({ resources, clusterOf }: World): Attention[] {
  return resources.map((one) => {
    const stalled = one.status.conditions.find((condition) => condition.type === 'Stalled' && condition.status === 'True');
    const reconciled = one.status.conditions.find((condition) => condition.type === 'Reconciled');
    const said = stalled ?? reconciled;
    const pool = one.kind === 'NodePool';
    const cluster = pool ? clusterOf(one) : one.name;
    return {
      key: `${one.kind}/${one.uid}`,
      tone: stalled ? 'bad' : 'warn',
      what: `${pool ? `Node pool ${cluster}.` : 'Cluster '}${one.name} is ${stalled ? 'stalled' : 'not ready'}`,
      link: href(`/clusters/${segment(cluster)}${pool ? `/pools/${segment(one.name)}` : ''}`),
      since: said?.last_transition_time ?? one.status.lastTransitionTime,
      why: said?.message ?? '',
      next: 'what is missing is tried again, every ten seconds at the latest',
      command: pool ? shell('argosy', 'nodepool', 'explain', `${cluster}/${one.name}`) : shell('argosy', 'why', `cluster/${cluster}`),
      weight: stalled ? 72 : 35,
    };
  });
}
