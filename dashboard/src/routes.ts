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
  { pattern: '/safety', title: 'Safety', load: () => import('./pages/safety') },
  { pattern: '/bench', title: 'Bench', load: () => import('./pages/bench') },
];
