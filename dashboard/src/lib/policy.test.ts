import { expect, it } from 'vitest';
import { askedOrder, hitsOf, nodeChanges, policyPut, shapePolicy } from './policy';
import type { BacktestHit, Finding, Rule } from './types';

const rule = (name: string, priority?: number): Rule => ({ name, condition: 'true', result: 'degraded', ...(priority === undefined ? {} : { priority }) });

it('rules are asked by priority, and else as they are written', () => {
  expect(askedOrder([rule('a'), rule('b', 10), rule('c', 0), rule('d', 10), rule('e', -1)]).map((one) => one.name)).toEqual(['b', 'd', 'a', 'c', 'e']);
});

it('a file of the command line is taken as it is, without its tests', () => {
  const text = { name: 'default', description: 'x', tests: [{ xid: 31 }], rules: [{ name: 'a', condition: 'true', result: 'unhealthy', lasts: '1h' }] };
  expect(shapePolicy(text)).toEqual({ description: 'x', rules: [{ name: 'a', condition: 'true', result: 'unhealthy', lasts: '1h' }] });
  expect(policyPut({ rules: [rule('a', 0)], pools: [] })).toEqual({ rules: [rule('a')] });
});

it.each([
  [null, 'rules'],
  [{ rules: {} }, 'list'],
  [{ rules: [{ name: 'a', condition: 'x' }] }, 'rules[0]: `result`'],
  [{ rules: [{ name: 'a', condition: 'x', result: 'bad' }] }, 'healthy, degraded'],
  [{ rules: [], ruels: [] }, 'ruels'],
  [{ rules: [], pools: 'a' }, 'list of names'],
])('refuses %j', (value, problem) => {
  expect(() => shapePolicy(value)).toThrow(problem);
});

it('counts the hits of a policy by rule', () => {
  const finding = (rule_: string, node_id: string, policy = 'default') => ({ rule: rule_, node_id, policy, count: 2 }) as Finding;
  const hits = hitsOf([finding('a', 'n1'), finding('a', 'n1'), finding('a', 'n2'), finding('b', 'n1', 'other')], 'default');
  expect([...hits]).toEqual([['a', { findings: 3, nodes: 2, count: 6 }]]);
});

it('tells whom a new policy would hit, spare, and treat otherwise', () => {
  const hit = (node_id: string, name: string, severity: BacktestHit['severity'] = 'unhealthy', at = '2026-01-01T00:00:00Z'): BacktestHit => ({ node_id, rule: name, severity, at, event: 'xid' });
  const changes = nodeChanges({ only_new: [hit('a', 'r1'), hit('a', 'r1'), hit('c', 'r1', 'degraded')], only_current: [hit('b', 'r0'), hit('c', 'r0')] });
  expect(changes.map(({ node, kind, worst, events }) => [node, kind, worst, events])).toEqual([
    ['a', 'hit', 'unhealthy', 2],
    ['b', 'spared', 'unhealthy', 1],
    ['c', 'other', 'degraded', 2],
  ]);
});
