import { expect, it } from 'vitest';
import type { Instance, Node } from '../../lib/types';
import { plan, type Action, type Around } from './plan';

const node = {
  id: 'n1',
  pool: 'a',
  duty: { state: 'Active' },
  gpus: [
    { index: 0, utilization: 90 },
    { index: 1, utilization: 0 },
  ],
} as unknown as Node;
const around: Around = {
  instance: { id: 'n1', machine_id: 'i-1', provider: 'gcp', pool: 'a', cost_per_hour: 29.4 } as Instance,
  budgets: [
    {
      scope: 'pool/default/a',
      name: 'pool a',
      used: 1,
      asked: 1,
      allowed: 1,
      total: 3,
      exceeded: true,
      frees: 'n3 is cordoned by ann: `argosy node uncordon n3`',
      message: 'pool a: 1 node may be out of service, 1 is (n3 cordoned by ann), and 1 more is asked for',
    },
  ],
};
const said = (action: Action, more: Partial<Around> = {}, force = false) =>
  plan(node, action, { ...around, ...more }, { drainFor: '1h', force }).map(({ mark, text }) => `${mark} ${text}`);

it('a cordon says what leaves service and what is left', () => {
  expect(said('CORDON')).toEqual([
    '~ n1: Active → Cordoned',
    '= What runs on it goes on; nothing new is started',
    '- 2 GPUs out of service, 1 of them at work now',
    '- Disruption budget, pool a: 1 node may be out of service, 1 is (n3 cordoned by ann), and 1 more is asked for',
    '= n3 is cordoned by ann: `argosy node uncordon n3`',
  ]);
});

it('a drain says whose work ends and when', () => {
  expect(said('DRAIN')).toContain('- Work on 1 GPU is asked to end within 1h');
  expect(said('DRAIN', {}, true)).toContain('- What still runs at the deadline is ended');
});

it('terminating names the machine, its price, and what is bought instead', () => {
  expect(said('TERMINATE')).toContain('- Machine i-1 at gcp is returned: $29.40 an hour less');
  expect(said('TERMINATE')).toContain('+ a buys another if it then has too few');
  expect(said('TERMINATE', { instance: null })).toContain('= Argosy did not buy this machine, and does not return it');
});

it('what is so already is said', () => {
  expect(said('UNCORDON')[0]).toBe('= n1 is Active already');
});
