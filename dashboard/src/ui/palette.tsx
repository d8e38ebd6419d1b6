/** The command palette: go to anything, run anything, by a few letters. */
import { signal, useSignal } from '@preact/signals';
import { useEffect, useId, useRef } from 'preact/hooks';
import { BASE_API } from '../lib/api';
import { best } from '../lib/fuzzy';
import { allPages } from '../lib/pages';
import { go, href, segment } from '../lib/router';
import { mayAct } from '../lib/session';
import { nodes } from '../lib/stores';
import { setTheme } from '../lib/theme';
import type { Resource, ResourceList } from '../lib/types';
import { ROUTES } from '../routes';
import { Text } from './basics';
import { Dialog } from './dialog';
import { Icon, type IconName } from './glyph';
import { openSheet } from './shortcuts';

export interface Item {
  kind: string;
  name: string;
  icon: IconName;
  act: () => void;
  /** What people call it, where its name says more: a pool comes before the nodes that begin with its name. */
  called?: string;
  /** More words it is found by. */
  also?: string;
  /** Changes something: not offered to viewers. */
  changes?: boolean;
}

/** What fits without scrolling for long. */
const SHOWN_MAX = 40;

const open = signal(false);
const actions = signal<readonly Item[]>([]);

export function openPalette(): void {
  open.value = true;
}

/** Offer what the present page can do, while it is shown. */
export function usePaletteActions(items: readonly Item[], depends: readonly unknown[]): void {
  useEffect(() => {
    actions.value = [...actions.peek(), ...items];
    return () => {
      actions.value = actions.peek().filter((one) => !items.includes(one));
    };
  }, depends);
}

function always(): Item[] {
  return [
    ...ROUTES.flatMap((route): Item[] =>
      route.nav
        ? [{ kind: 'Page', name: route.title, icon: route.nav.icon, act: () => go(href(route.pattern)) }]
        : [],
    ),
    { kind: 'Page', name: 'Safety', also: 'breaker budget pause', icon: 'audit', act: () => go(href('/safety')) },
    { kind: 'Page', name: 'API reference', icon: 'policy', act: () => location.assign('/docs') },
    { kind: 'View', name: 'Light theme', icon: 'sun', act: () => setTheme('light') },
    { kind: 'View', name: 'Dark theme', icon: 'moon', act: () => setTheme('dark') },
    { kind: 'View', name: 'Theme of the system', icon: 'system', act: () => setTheme('system') },
    { kind: 'Help', name: 'Keyboard shortcuts', icon: 'help', act: openSheet },
  ];
}

/** What a person chose. Clusters and nodes that are found later move it, and must not take its place. */
interface Picked {
  at: number;
  key: string;
}

function keyOf(item: Item): string {
  return `${item.kind}/${item.name}`;
}

function indexOf(picked: Picked | undefined, items: readonly Item[]): number {
  if (!picked) return 0;
  const isIt = (item: Item | undefined) => item !== undefined && keyOf(item) === picked.key;
  // Its old place first: two may bear one name.
  return isIt(items[picked.at]) ? picked.at : Math.max(0, items.findIndex(isIt));
}

export function Palette() {
  return open.value ? <Opened onClose={() => (open.value = false)} /> : null;
}

function Opened({ onClose }: { onClose: () => void }) {
  const typed = useSignal('');
  const picked = useSignal<Picked | undefined>(undefined);
  const resources = useSignal<Item[]>([]);
  const list = useRef<HTMLUListElement>(null);
  const id = useId();

  useEffect(() => nodes.use(), []);
  useEffect(() => {
    const abort = new AbortController();
    void found(abort.signal).then((items) => (resources.value = items));
    return () => abort.abort();
  }, []);

  const offered = (): Item[] => {
    const fixed = [...actions.value.filter((one) => !one.changes || mayAct.value), ...always(), ...resources.value];
    const text = typed.value.trim();
    if (text === '') return fixed.slice(0, SHOWN_MAX);
    void nodes.version.value;
    const names: Item[] = [];
    for (const node of nodes.items.values())
      names.push({ kind: 'Node', name: node.id, also: node.pool, icon: 'node', act: () => go(href(`/nodes/${segment(node.id)}`)) });
    return best(text, [...fixed, ...names], (one) => `${one.called ?? ''} ${one.name} ${one.also ?? ''} ${one.kind}`.trimStart(), SHOWN_MAX);
  };
  const items = offered();
  const chosen = indexOf(picked.value, items);
  const pick = (at: number) => {
    const item = items[at];
    if (item) picked.value = { at, key: keyOf(item) };
  };

  const run = (item: Item | undefined) => {
    if (!item) return;
    onClose();
    // After the dialog gave focus back, so that what opens next can take it.
    setTimeout(item.act, 0);
  };
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);

  return (
    <Dialog title="Go to anything" onClose={onClose} bare>
      <div class="palette">
        <div class="palette-input">
          <Icon name="search" />
          <input
            type="text"
            role="combobox"
            aria-label="Go to a page, node, pool or cluster, or run an action"
            aria-expanded="true"
            aria-controls={id}
            aria-activedescendant={items.length > 0 ? `${id}-${chosen}` : undefined}
            placeholder="Node, pool, cluster, page or action"
            autocomplete="off"
            spellcheck={false}
            maxLength={200}
            value={typed.value}
            onInput={(event) => {
              typed.value = event.currentTarget.value;
              picked.value = undefined;
            }}
            onKeyDown={(event) => {
              const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
              if (step !== 0 && items.length > 0) {
                event.preventDefault();
                pick((chosen + step + items.length) % items.length);
              } else if (event.key === 'Enter') {
                event.preventDefault();
                run(items[chosen]);
              }
            }}
          />
        </div>
        <ul class="palette-list" role="listbox" id={id} aria-label="Results" ref={list}>
          {items.map((item, i) => (
            <li
              key={`${keyOf(item)}/${i}`}
              id={`${id}-${i}`}
              role="option"
              aria-selected={i === chosen}
              onClick={() => run(item)}
              onMouseMove={() => pick(i)}
            >
              <Icon name={item.icon} />
              <Text value={item.name} max={90} brief />
              <span class="palette-kind">{item.kind}</span>
            </li>
          ))}
        </ul>
        {items.length === 0 && <p class="palette-none">Nothing is called that.</p>}
      </div>
    </Dialog>
  );
}

/** Clusters and node pools, asked for when the palette opens. Without them it still serves for the rest. */
async function found(signal: AbortSignal): Promise<Item[]> {
  try {
    const [clusters, pools] = await Promise.all(
      ['clusters', 'nodepools'].map((kind) =>
        allPages<ResourceList>(`${BASE_API}/${kind}`, { fields: 'name,kind,owner_references,cluster_id,uid' }, signal),
      ),
    );
    const names = new Map((clusters?.items ?? []).map((one) => [one.id, one.name]));
    const item = (one: Resource): Item =>
      one.kind === 'Cluster'
        ? { kind: 'Cluster', name: one.name, icon: 'cluster', act: () => go(href(`/clusters/${segment(one.name)}`)) }
        : poolItem(one, names.get(one.cluster_id ?? '') ?? one.cluster_id ?? '');
    return [...(clusters?.items ?? []), ...(pools?.items ?? [])].map(item);
  } catch {
    return [];
  }
}

function poolItem(pool: Resource, cluster: string): Item {
  return {
    kind: 'Node pool',
    name: `${cluster}.${pool.name}`,
    called: pool.name,
    icon: 'pool',
    act: () => go(href(`/clusters/${segment(cluster)}/pools/${segment(pool.name)}`)),
  };
}
