/** Health policies, made ready to show and to send. All of it is pure. */
import type { BacktestHit, BacktestReport, Finding, Policy, PolicyPut, Rule, Severity } from './types';

/** The order in which rules are asked: higher priority first, equals as they are written. */
export function askedOrder(rules: readonly Rule[]): Rule[] {
  return rules.map((rule, i) => ({ rule, i })).sort((a, b) => (b.rule.priority ?? 0) - (a.rule.priority ?? 0) || a.i - b.i).map(({ rule }) => rule);
}

/** What can be changed of a policy, without what the server adds, and without what is as if it were left out. */
export function policyPut(policy: Policy | PolicyPut): PolicyPut {
  return {
    ...(policy.description ? { description: policy.description } : {}),
    ...(policy.pools && policy.pools.length > 0 ? { pools: policy.pools } : {}),
    rules: policy.rules.map((rule) => ({
      name: rule.name,
      ...(rule.description ? { description: rule.description } : {}),
      ...(rule.priority ? { priority: rule.priority } : {}),
      condition: rule.condition,
      result: rule.result,
      ...(rule.lasts ? { lasts: rule.lasts } : {}),
    })),
  };
}

const KNOWN = ['name', 'description', 'pools', 'rules', 'tests'];
const RULE_KNOWN = ['name', 'description', 'priority', 'condition', 'result', 'lasts'];

/** What was typed as a policy, or an error with the place. The file's `name` and `tests` may stay in it. */
export function shapePolicy(value: unknown): PolicyPut {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new Error('A policy has `rules`, and may have `description` and `pools`.');
  const map = value as Record<string, unknown>;
  const other = Object.keys(map).find((key) => !KNOWN.includes(key));
  if (other !== undefined) throw new Error(`\`${other.slice(0, 60)}\` is no part of a policy; \`description\`, \`pools\` and \`rules\` are.`);
  if (!Array.isArray(map['rules'])) throw new Error('`rules` is a list.');
  const rules = map['rules'].map((one: unknown, i): Rule => {
    const at = `rules[${i}]`;
    if (one === null || typeof one !== 'object' || Array.isArray(one)) throw new Error(`${at} needs \`name\`, \`condition\` and \`result\`.`);
    const rule = one as Record<string, unknown>;
    const odd = Object.keys(rule).find((key) => !RULE_KNOWN.includes(key));
    if (odd !== undefined) throw new Error(`${at}: \`${odd.slice(0, 60)}\` is no part of a rule.`);
    for (const key of ['name', 'condition', 'result']) if (typeof rule[key] !== 'string' || rule[key] === '') throw new Error(`${at}: \`${key}\` is missing, or is no text.`);
    if (!['healthy', 'degraded', 'unhealthy'].includes(rule['result'] as string)) throw new Error(`${at}: \`result\` is healthy, degraded or unhealthy.`);
    return rule as unknown as Rule;
  });
  const pools = map['pools'];
  if (pools !== undefined && (!Array.isArray(pools) || pools.some((one) => typeof one !== 'string'))) throw new Error('`pools` is a list of names.');
  const description = map['description'];
  if (description !== undefined && typeof description !== 'string') throw new Error('`description` is a text.');
  return policyPut({ ...(description ? { description } : {}), ...(pools ? { pools: pools as string[] } : {}), rules });
}

/** How many findings each rule has now, and on how many nodes. */
export function hitsOf(findings: readonly Finding[], policy: string): Map<string, { findings: number; nodes: number; count: number }> {
  const nodes = new Map<string, Set<string>>();
  const hits = new Map<string, { findings: number; nodes: number; count: number }>();
  for (const one of findings) {
    if ((one.policy ?? 'default') !== policy) continue;
    const seen = nodes.get(one.rule) ?? new Set();
    nodes.set(one.rule, seen.add(one.node_id));
    const before = hits.get(one.rule) ?? { findings: 0, nodes: 0, count: 0 };
    hits.set(one.rule, { findings: before.findings + 1, nodes: seen.size, count: before.count + one.count });
  }
  return hits;
}

export interface NodeChange {
  node: string;
  /** `hit`: only the new policy acts on it; `spared`: only the present one; `other`: both, differently. */
  kind: 'hit' | 'spared' | 'other';
  worst: Severity;
  events: number;
  now: string[];
  then: string[];
  last: string;
}

const BAD: Record<Severity, number> = { healthy: 0, degraded: 1, unhealthy: 2 };

/** Whom a policy would have treated otherwise, the worst first. */
export function nodeChanges(report: Pick<BacktestReport, 'only_current' | 'only_new'>): NodeChange[] {
  const found = new Map<string, { now: BacktestHit[]; then: BacktestHit[] }>();
  const of = (node: string) => {
    const one = found.get(node) ?? { now: [], then: [] };
    found.set(node, one);
    return one;
  };
  for (const hit of report.only_new) of(hit.node_id).then.push(hit);
  for (const hit of report.only_current) of(hit.node_id).now.push(hit);
  const rules = (hits: BacktestHit[]) => [...new Set(hits.map((hit) => hit.rule))];
  const worst = (hits: BacktestHit[]) => hits.reduce<Severity>((bad, hit) => (BAD[hit.severity] > BAD[bad] ? hit.severity : bad), 'healthy');
  return [...found]
    .map(([node, { now, then }]): NodeChange => {
      const kind = now.length === 0 ? 'hit' : then.length === 0 ? 'spared' : 'other';
      const hits = then.length > 0 ? then : now;
      return { node, kind, worst: worst(hits), events: now.length + then.length, now: rules(now), then: rules(then), last: hits.map((hit) => hit.at).sort().at(-1) ?? '' };
    })
    .sort((a, b) => BAD[b.worst] - BAD[a.worst] || a.kind.localeCompare(b.kind) || a.node.localeCompare(b.node));
}
