import { expect, it } from 'vitest';
import type { FleetNode } from '../../lib/fleet';
import { grouped, groupOf, searchOf } from './groups';

const node = (more: Partial<FleetNode>): FleetNode => ({ id: 'n', first: 0, status: 'ACTIVE', health: 'HEALTHY', liveness: 'Fresh', revision: 1, gpus: 8, ...more });

it.each([
  [{ zone: 'z1', rack: 'r1' }, 'z1 / r1'],
  [{ zone: 'z1', rack: 'z1-r1' }, 'z1-r1'],
  [{ zone: 'z1' }, 'z1 / no rack'],
])('the rack of %j is %s', (more, name) => {
  expect(groupOf(node(more), 'rack')).toBe(name);
});

it('groups and nodes stand in the order of their numbers; nodes without GPUs take no room', () => {
  const groups = grouped([node({ id: 'n10', pool: 'p10' }), node({ id: 'n2', pool: 'p2' }), node({ id: 'n1', pool: 'p10' }), node({ id: 'cpu', gpus: 0, pool: 'p1' })], 'pool');
  expect(groups.map((group) => [group.name, group.nodes.map(({ id }) => id)])).toEqual([
    ['p2', ['n2']],
    ['p10', ['n1', 'n10']],
  ]);
});

it('the search of a group cannot be escaped from', () => {
  expect(searchOf(node({ pool: "a' or '1" }), 'pool')).toBe("pool = 'a\\' or \\'1'");
  expect(searchOf(node({ zone: 'z', rack: 'r' }), 'rack')).toBe("labels.rack = 'r' and zone = 'z'");
  expect(searchOf(node({}), 'pool')).toBeNull();
});
