/** The fleet in groups, in an order people expect. Pure. */
import type { FleetNode } from '../../lib/fleet';
import { text } from '../../lib/search';
import type { LayoutGroup } from './layout';

export const GROUPINGS = ['pool', 'zone', 'rack', 'cluster'] as const;
export type Grouping = (typeof GROUPINGS)[number];

const COLLATOR = new Intl.Collator('en', { numeric: true });

/** What a node is grouped by; a rack is one only inside its zone. */
export function groupOf(node: FleetNode, by: Grouping): string {
  if (by === 'rack') {
    const zone = node.zone ?? 'no zone';
    return !node.rack ? `${zone} / no rack` : node.rack.startsWith(zone) ? node.rack : `${zone} / ${node.rack}`;
  }
  if (by === 'cluster') return node.cluster ?? 'no cluster';
  return node[by] ?? `no ${by}`;
}

export function grouped(nodes: Iterable<FleetNode>, by: Grouping): LayoutGroup[] {
  const groups = new Map<string, FleetNode[]>();
  for (const node of nodes) {
    if (node.gpus === 0) continue;
    const name = groupOf(node, by);
    const group = groups.get(name);
    if (group) group.push(node);
    else groups.set(name, [node]);
  }
  return [...groups]
    .sort(([a], [b]) => COLLATOR.compare(a, b))
    .map(([name, members]) => ({ name, nodes: members.sort((a, b) => COLLATOR.compare(a.id, b.id)) }));
}

/** The search that lists the nodes of a group, or null where there is none. */
export function searchOf(node: FleetNode | undefined, by: Grouping): string | null {
  if (!node) return null;
  if (by === 'pool') return node.pool ? `pool = ${text(node.pool)}` : null;
  if (by === 'zone') return node.zone ? `zone = ${text(node.zone)}` : null;
  if (by === 'cluster') return node.cluster ? `pool like ${text(`${node.cluster}.%`)}` : null;
  return node.rack ? `labels.rack = ${text(node.rack)}${node.zone ? ` and zone = ${text(node.zone)}` : ''}` : null;
}
