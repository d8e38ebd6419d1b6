/** Every page there is: its address, its name, and where its code is. Pages are loaded when they are first opened. */
import type { ComponentType } from 'preact';
import type { Params } from './lib/router';
import type { IconName } from './ui/glyph';

export interface PageProps {
  params: Params;
}

export interface Route {
  pattern: string;
  title: string;
  load: () => Promise<{ default: ComponentType<PageProps> }>;
  /** In the navigation, with this icon and the second key after `g`. */
  nav?: { icon: IconName; key: string; group: 'see' | 'want' | 'know' };
}

export const ROUTES: Route[] = [
  { pattern: '/', title: 'Fleet', load: () => import('./pages/fleet/fleet'), nav: { icon: 'fleet', key: 'f', group: 'see' } },
  { pattern: '/nodes', title: 'Nodes', load: () => import('./pages/nodes/list'), nav: { icon: 'node', key: 'n', group: 'see' } },
  { pattern: '/nodes/:id', title: 'Node', load: () => import('./pages/nodes/node') },
  { pattern: '/instances', title: 'Instances', load: () => import('./pages/instances/list'), nav: { icon: 'money', key: 'i', group: 'see' } },
  { pattern: '/instances/:id', title: 'Instance', load: () => import('./pages/instances/instance') },
  { pattern: '/clusters', title: 'Clusters', load: () => import('./pages/clusters/list'), nav: { icon: 'cluster', key: 'c', group: 'want' } },
  { pattern: '/clusters/:cluster', title: 'Cluster', load: () => import('./pages/clusters/cluster') },
  { pattern: '/clusters/:cluster/pools/:pool', title: 'Node pool', load: () => import('./pages/pools/pool') },
  { pattern: '/pools', title: 'Node pools', load: () => import('./pages/pools/list'), nav: { icon: 'pool', key: 'p', group: 'want' } },
  { pattern: '/policies', title: 'Policies', load: () => import('./pages/policies/list'), nav: { icon: 'policy', key: 'o', group: 'want' } },
  { pattern: '/policies/:policy', title: 'Policy', load: () => import('./pages/policies/policy') },
  // Not below /clusters: `new` may be the name of a cluster.
  { pattern: '/create/cluster', title: 'Create a cluster', load: () => import('./pages/clusters/create') },
  { pattern: '/create/pool', title: 'Create a node pool', load: () => import('./pages/pools/create') },
  { pattern: '/create/policy', title: 'Write a policy', load: () => import('./pages/policies/create') },
  { pattern: '/events', title: 'Events', load: () => import('./pages/events'), nav: { icon: 'event', key: 'e', group: 'know' } },
  { pattern: '/audit', title: 'Audit', load: () => import('./pages/audit'), nav: { icon: 'audit', key: 'a', group: 'know' } },
  { pattern: '/simulations', title: 'Simulations', load: () => import('./pages/simulations/simulations'), nav: { icon: 'simulation', key: 's', group: 'know' } },
  { pattern: '/safety', title: 'Safety', load: () => import('./pages/safety') },
  { pattern: '/bench', title: 'Bench', load: () => import('./pages/bench') },
];
