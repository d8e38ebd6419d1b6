/** What machines cost, and which part of it does no work. All of it is pure. */
import type { Instance, Node, Orphan } from './types';

export type Cut = 'pool' | 'provider' | 'region' | 'machine_type';

export interface Share {
  name: string;
  machines: number;
  cost: number;
  /** How many of them have no known price: they cost more than `cost` then. */
  unpriced: number;
  wasted: number;
}

/** Why a machine that is paid for does no work, or null where it does. */
export function wasteOf(instance: Pick<Instance, 'state' | 'node_id'>, node: Pick<Node, 'status'> | undefined): string | null {
  switch (instance.state) {
    case 'Provisioning':
      return 'being made';
    case 'AwaitingNode':
      return 'booting';
    case 'Terminating':
      return 'being returned';
    case 'Terminated':
    case 'Failed':
      return null;
    default:
  }
  if (!node) return null;
  return node.status === 'ACTIVE' ? null : node.status === 'UNKNOWN' ? 'state unknown' : node.status.toLowerCase();
}

type Priced = Pick<Instance, 'state' | 'cost_per_hour'>;

/** Whether a machine is, or may be, paid for. */
const open = (instance: Priced) => instance.state !== 'Terminated' && instance.state !== 'Failed';

/** Nothing is paid for a machine before there is one. */
function paid(instance: Instance): number {
  return open(instance) && instance.machine_id ? (instance.cost_per_hour ?? 0) : 0;
}

/** What several cost together, and how many of them have no known price. */
export function costs(instances: Iterable<Priced>): { cost: number; unpriced: number } {
  let [cost, unpriced] = [0, 0];
  for (const one of instances) {
    cost += one.cost_per_hour ?? 0;
    if (open(one) && one.cost_per_hour === undefined) unpriced += 1;
  }
  return { cost, unpriced };
}

/** Money by pool, provider or region, the dearest first. */
export function shares(instances: Iterable<Instance>, nodes: ReadonlyMap<string, Node>, cut: Cut): Share[] {
  const found = new Map<string, Share>();
  for (const one of instances) {
    const name = cut === 'region' ? `${one.provider} ${one.region}` : one[cut];
    const share = found.get(name) ?? { name, machines: 0, cost: 0, unpriced: 0, wasted: 0 };
    share.machines += 1;
    share.cost += paid(one);
    share.unpriced += costs([one]).unpriced;
    if (wasteOf(one, nodes.get(one.node_id ?? '')) !== null) share.wasted += paid(one);
    found.set(name, share);
  }
  return [...found.values()].sort((a, b) => b.cost - a.cost || a.name.localeCompare(b.name));
}

export interface Total {
  machines: number;
  cost: number;
  /** How many machines, orphans among them, have no known price: they cost more than `cost` then. */
  unpriced: number;
  wasted: number;
  orphaned: number;
  /** Wasted money by its reason, the most first; orphans among them. */
  reasons: { reason: string; machines: number; cost: number }[];
}

export function total(instances: Iterable<Instance>, nodes: ReadonlyMap<string, Node>, orphans: readonly Orphan[]): Total {
  const reasons = new Map<string, { reason: string; machines: number; cost: number }>();
  const waste = (reason: string, cost: number) => {
    const one = reasons.get(reason) ?? { reason, machines: 0, cost: 0 };
    reasons.set(reason, { reason, machines: one.machines + 1, cost: one.cost + cost });
  };
  let machines = 0;
  let cost = 0;
  let unpriced = orphans.filter((one) => one.cost_per_hour === undefined).length;
  for (const one of instances) {
    machines += 1;
    cost += paid(one);
    unpriced += costs([one]).unpriced;
    const reason = wasteOf(one, nodes.get(one.node_id ?? ''));
    if (reason !== null && paid(one) > 0) waste(reason, paid(one));
  }
  const orphaned = orphans.reduce((sum, one) => sum + (one.cost_per_hour ?? 0), 0);
  for (const one of orphans) waste('orphaned', one.cost_per_hour ?? 0);
  const list = [...reasons.values()].sort((a, b) => b.cost - a.cost);
  return { machines, cost: cost + orphaned, unpriced, orphaned, wasted: list.reduce((sum, one) => sum + one.cost, 0), reasons: list };
}

export interface Step {
  word: string;
  state: 'done' | 'now' | 'ahead' | 'bad';
  at?: string;
  text?: string;
}

/** The way of a machine, from its order to its return; what is not known to have happened is ahead. */
export function walk(instance: Instance, node: Pick<Node, 'registered_at' | 'status'> | null): Step[] {
  const order = ['Provisioning', 'AwaitingNode', 'Running', 'Terminating', 'Terminated'] as const;
  const ended = instance.state === 'Failed' || instance.state === 'Terminating' || instance.state === 'Terminated';
  const registered = instance.node_id !== undefined || node !== null;
  const at = order.indexOf(instance.state as (typeof order)[number]);
  const made = instance.machine_id !== undefined;
  const steps: Step[] = [{ word: 'Ordered', state: 'done', at: instance.ordered_at, text: instance.why }];
  const now = (state: string): Partial<Step> => (instance.state === state ? { at: instance.since, text: instance.status_message } : {});
  if (instance.state === 'Provisioning') steps.push({ word: 'Being made', state: 'now', ...now('Provisioning') });
  else if (made) steps.push({ word: 'Made', state: 'done', text: instance.machine_id });
  if (instance.state === 'Failed') {
    steps.push({ word: 'Failed', state: 'bad', at: instance.since, text: instance.reason ?? instance.status_message });
    return steps;
  }
  if (!ended || registered)
    steps.push({
      word: 'Registered',
      state: at >= 2 ? 'done' : instance.state === 'AwaitingNode' ? 'now' : 'ahead',
      ...(node ? { at: node.registered_at } : instance.state === 'Running' ? { at: instance.since } : {}),
      ...(instance.state === 'AwaitingNode' ? { at: instance.since, text: instance.status_message } : {}),
    });
  for (const tried of instance.tried ?? [])
    steps.push({ word: `Tried: ${tried.cure}`, state: 'done', at: tried.at, text: `${tried.because}${tried.outcome ? ` → ${tried.outcome}` : ''}` });
  if (!ended) {
    if (instance.state === 'Running') steps.push({ word: 'In service', state: 'now', at: node?.registered_at ?? instance.since, text: instance.status_message });
    return steps;
  }
  steps.push({ word: 'Being returned', state: instance.state === 'Terminating' ? 'now' : 'done', ...now('Terminating'), ...(instance.reason ? { text: instance.reason } : {}) });
  steps.push({ word: 'Returned', state: instance.state === 'Terminated' ? 'done' : 'ahead', ...now('Terminated') });
  return steps;
}
