import { expect, it } from 'vitest';
import type { Brakes, Instance, Node, Resource } from '../../lib/types';
import { attention, type World } from './attention';

const AT = '2026-01-01T00:00:00Z';
const NOW = Date.parse('2026-01-01T00:10:00Z');

function node(more: Partial<Node> = {}): Node {
  return {
    id: 'n1',
    kind: 'Node',
    href: '',
    tenant: 'default',
    status: 'ACTIVE',
    health_status: 'HEALTHY',
    health: { status: 'HEALTHY', since: AT },
    liveness: 'Fresh',
    liveness_since: AT,
    duty: { state: 'Active' },
    external: { told: '', failures: 0 },
    gpus: [{ index: 3, uuid: 'GPU-3' }],
    attached: true,
    joined_at: AT,
    registered_at: AT,
    revision: 1,
    ...more,
  };
}

const sick = {
  health: { status: 'UNHEALTHY' as const, since: AT },
  findings: [
    { node_id: 'n1', key: 'k', severity: 'unhealthy' as const, rule: 'r', message: 'Xid 79', gpu: 'GPU-3', first_seen: AT, last_seen: AT, count: 1, ends: 'AtReboot' as const },
  ],
};
const brakes = (more: Partial<Brakes> = {}): Brakes => ({ kind: 'Brakes', pauses: [], breakers: [], budgets: [], ...more });
const world = (more: Partial<World>): World => ({ nodes: [], brakes: null, providers: [], resources: [], clusterOf: (pool) => `name-of-${pool.cluster_id}`, replacements: [], now: NOW, ...more });
const only = (more: Partial<World>) => attention(world(more))[0];

it('says nothing of what is well', () => {
  expect(attention(world({ nodes: [node(), node({ duty: { state: 'Terminated' } })] }))).toEqual([]);
});

it.each<[string, Partial<Node>, string, string]>([
  ['sick in service', sick, 'GPU 3 of n1 is unhealthy; the node is in service', 'It is cordoned, inside the budget'],
  ['sick and cordoned', { ...sick, duty: { state: 'Cordoned', automatic: true } }, 'GPU 3 of n1 is unhealthy; the node is cordoned', 'Its pool buys a replacement first, then it is drained and returned'],
  ['held', { ...sick, held: { action: 'cordon', guard: 'budget', reason: '1 of 1', since: AT } }, 'GPU 3 of n1 is unhealthy; the node is in service', 'To cordon it is due, and held by the budget: 1 of 1'],
  ['silent', { liveness: 'Unreachable' }, 'n1 is unreachable', 'It is cordoned after five minutes of silence'],
  ['silent and cordoned', { liveness: 'Unreachable', duty: { state: 'Cordoned', automatic: true } }, 'n1 is unreachable', 'Its pool buys a replacement first, then it is drained and returned'],
  ['by hand', { duty: { state: 'Cordoned', by: 'ann', automatic: false } }, 'n1 is cordoned by ann', 'Nothing: what a person did, a person undoes'],
  ['well again', { duty: { state: 'Cordoned', automatic: true } }, 'n1 is cordoned', 'It returns to service when it is well'],
  ['draining', { duty: { state: 'Draining', automatic: true, deadline: '2026-01-01T00:30:00Z' } }, 'n1 is draining', 'Its work may end until its deadline in 20m; then its machine is returned'],
])('%s', (_, more, what, next) => {
  expect(only({ nodes: [node(more)] })).toMatchObject({ what, next });
});

it('names the replacement that is on its way', () => {
  const replacement = { id: 'n2', replaces: 'n1', state: 'AwaitingNode', status_message: 'its node has not registered' } as Instance;
  expect(only({ nodes: [node({ ...sick, duty: { state: 'Cordoned', automatic: true } })], replacements: [replacement] })?.next).toBe(
    'n2 is being made to replace it: its node has not registered',
  );
});

it('a pause stops every next step, and is listed itself', () => {
  const list = attention(world({ nodes: [node(sick)], brakes: brakes({ pauses: [{ at: AT, by: 'ann', reason: 'fire drill', revision: 1 }] }) }));
  expect(list.map((one) => one.key)).toEqual(['pause/', 'node/n1']);
  expect(list[1]?.next).toBe('Nothing while automatic action is paused');
});

it('an open breaker comes first and says when it is tried', () => {
  const breaker = { scope: 'pool/default/a', opened_at: AT, last_bad_at: AT, reason: '4 of 12', revision: 1 };
  expect(only({ nodes: [node(sick)], brakes: brakes({ breakers: [breaker] }) })).toMatchObject({
    key: 'breaker/pool/default/a',
    next: 'If it stays calm, one action is tried in 5m',
  });
});

it('a pool is called, linked and asked for with its cluster', () => {
  const status = { phase: 'Not Ready', lastTransitionTime: AT, conditions: [] };
  const pool = { kind: 'NodePool', uid: 'u', name: 'h100', cluster_id: 'c', status } as unknown as Resource;
  expect(only({ resources: [pool] })).toMatchObject({
    what: 'Node pool name-of-c.h100 is not ready',
    link: '/ui/clusters/name-of-c/pools/h100',
    command: 'argosy nodepool explain name-of-c/h100',
  });
});
