import { expect, it } from 'vitest';
import { spend } from './format';
import { costs, shares, total, walk, wasteOf } from './money';
import type { Instance, InstanceState, Node, NodeStatus, Orphan } from './types';

function instance(id: string, state: InstanceState, cost: number, more: Partial<Instance> = {}): Instance {
  return {
    id, state, kind: 'Instance', href: '', tenant: 't', since: '2026-01-01T00:00:10Z', status_message: 's', pool: 'a.p', pool_id: 'p', number: 1,
    provider: 'gcp', region: 'us-east1', machine_type: 'x', spot: false, ordered_at: '2026-01-01T00:00:00Z', why: 'node 1 of 2', calls: 0, revision: 1,
    node_id: id, machine_id: `i-${id}`, cost_per_hour: cost, ...more,
  };
}
const node = (id: string, status: NodeStatus) => [id, { id, status } as Node] as const;

it.each([
  ['Running', 'ACTIVE', null],
  ['Running', 'CORDONED', 'cordoned'],
  ['Running', 'UNHEALTHY', 'unhealthy'],
  ['AwaitingNode', 'ACTIVE', 'booting'],
  ['Terminating', 'DRAINING', 'being returned'],
  ['Terminated', 'TERMINATED', null],
] as const)('a machine that is %s with a node that is %s is wasted as %s', (state, status, reason) => {
  expect(wasteOf({ state, node_id: 'n' }, { status })).toBe(reason);
});

it('adds money up by what is asked, and what is wasted beside it', () => {
  const nodes = new Map([node('a', 'ACTIVE'), node('b', 'CORDONED')]);
  const list = [instance('a', 'Running', 10), instance('b', 'Running', 20, { provider: 'aws' }), instance('c', 'Provisioning', 5, { machine_id: undefined }), instance('d', 'Terminated', 99)];
  expect(shares(list, nodes, 'provider')).toEqual([
    { name: 'aws', machines: 1, cost: 20, unpriced: 0, wasted: 20 },
    { name: 'gcp', machines: 3, cost: 10, unpriced: 0, wasted: 0 },
  ]);
  const sum = total(list, nodes, [{ cost_per_hour: 3 } as Orphan]);
  expect(sum).toMatchObject({ machines: 4, cost: 33, wasted: 23, orphaned: 3 });
  expect(sum.reasons.map((one) => [one.reason, one.cost])).toEqual([['cordoned', 20], ['orphaned', 3]]);
});

it('counts what has no known price, and never calls it nothing', () => {
  const list = [instance('a', 'Running', 10), instance('b', 'Running', 0, { cost_per_hour: undefined }), instance('c', 'Failed', 0, { cost_per_hour: undefined })];
  expect(costs(list)).toEqual({ cost: 10, unpriced: 1 });
  expect(total(list, new Map(), [{} as Orphan])).toMatchObject({ cost: 10, unpriced: 2 });
  expect([spend(10, 0), spend(10, 2), spend(0, 2), spend(0, undefined)]).toEqual(['$10.00', 'at least $10.00', 'unknown', '$0.00']);
});

it.each([
  ['Provisioning', { machine_id: undefined, node_id: undefined }, ['Ordered done', 'Being made now', 'Registered ahead']],
  ['AwaitingNode', { node_id: undefined }, ['Ordered done', 'Made done', 'Registered now']],
  ['Running', {}, ['Ordered done', 'Made done', 'Registered done', 'In service now']],
  ['Terminating', {}, ['Ordered done', 'Made done', 'Registered done', 'Being returned now', 'Returned ahead']],
  ['Failed', { machine_id: undefined, node_id: undefined }, ['Ordered done', 'Failed bad']],
  ['Terminated', { node_id: undefined }, ['Ordered done', 'Made done', 'Being returned done', 'Returned done']],
] as const)('the walk of one that is %s', (state, more, steps) => {
  expect(walk(instance('a', state, 1, more as Partial<Instance>), null).map((step) => `${step.word} ${step.state}`)).toEqual(steps);
});
