/** The map of every GPU: a canvas with titles above its groups, a card for the cell under the pointer, and keys. */
import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { GPU_STATES, NONE, NONE_W, UNHEALTHY, type FleetModel, type FleetNode } from '../../lib/fleet';
import { bytes, count, plural } from '../../lib/format';
import { go, href, segment } from '../../lib/router';
import { HEALTH, LIVENESS, lookOf, NODE_STATUS } from '../../lib/states';
import { shownTheme } from '../../lib/theme';
import { Badge, Text } from '../../ui/basics';
import { Glyph } from '../../ui/glyph';
import type { Colour } from './colours';
import { grouped, groupOf, searchOf, type Grouping } from './groups';
import { fit, HEAD_PX, hit, layout as layoutWith, NODE_COLUMNS, PITCHES, type Hit, type Layout } from './layout';
import { Painter } from './painter';

interface Props {
  model: FleetModel;
  by: Grouping;
  colour: Colour;
  /** Steps larger than what fits. */
  zoom: number;
  /** For the bench. */
  onPainter?: (painter: Painter) => void;
}

/** New nodes come in bursts; laying out anew at most this often is enough. */
const LAYOUT_EVERY_MS = 250;

export function FleetMap({ model, by, colour, zoom, onPainter }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<Painter | null>(null);
  const layout = useSignal<Layout | null>(null);
  const width = useSignal(0);
  const room = useSignal(480);
  const moved = useSignal(0);
  const at = useSignal<Hit | null>(null);
  const spoken = useSignal('');

  // The painter lives as long as the canvas.
  useLayoutEffect(() => {
    const box = scroller.current;
    const surface = canvas.current;
    if (!box || !surface) return undefined;
    const made = new Painter(surface, box, model);
    painter.current = made;
    onPainter?.(made);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const off = model.listen({
      changed: (first, gpus) => made.changed(first, gpus),
      moved: () => {
        timer ??= setTimeout(() => {
          timer = undefined;
          moved.value += 1;
        }, LAYOUT_EVERY_MS);
      },
    });
    const size = () => {
      width.value = box.clientWidth;
      room.value = Math.max(320, Math.min(innerHeight - 340, 1400));
    };
    const observer = new ResizeObserver(size);
    observer.observe(box);
    size();
    const scrolled = () => {
      at.value = null;
      made.invalidate();
    };
    box.addEventListener('scroll', scrolled, { passive: true });
    return () => {
      off();
      clearTimeout(timer);
      observer.disconnect();
      box.removeEventListener('scroll', scrolled);
      made.stop();
    };
  }, [model]);

  const groups = useMemo(() => grouped(model.nodes.values(), by), [model, by, moved.value, model.ready.value]);

  useLayoutEffect(() => {
    if (width.value <= 0) return;
    const slots = model.state.length;
    let made = fit(groups, slots, width.value, room.value);
    if (zoom > 0) {
      const index = Math.max(0, PITCHES.findIndex((pitch) => pitch === made.pitch) - zoom);
      made = layoutWith(groups, slots, width.value, PITCHES[index] ?? made.pitch);
    }
    layout.value = made;
    painter.current?.resize(width.value, Math.min(made.height, room.value));
    painter.current?.setLayout(made);
  }, [groups, width.value, room.value, zoom]);

  useEffect(() => painter.current?.setColour(colour), [colour, model]);
  useEffect(() => painter.current?.setTheme(), [shownTheme.value, model]);

  const shown = layout.value;
  const point = (event: PointerEvent | MouseEvent): Hit | null => {
    const box = canvas.current?.getBoundingClientRect();
    if (!box || !shown) return null;
    return hit(shown, event.clientX - box.left, event.clientY - box.top + (scroller.current?.scrollTop ?? 0));
  };
  const open = (target: Hit) => go(href(`/nodes/${segment(target.node.id)}`, { gpu: target.place }));

  /** Arrow keys walk from GPU to GPU, and over the edge to the next node. */
  const walk = (event: KeyboardEvent) => {
    if (!shown) return;
    const here = at.value;
    if (event.key === 'Enter' && here) {
      open(here);
      return;
    }
    if (event.key === 'Escape') {
      at.value = null;
      return;
    }
    const steps: Record<string, [number, number]> = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const next = here ? neighbour(shown, here, step) : first(shown);
    if (!next) return;
    at.value = next;
    const box = scroller.current;
    const y = shown.y[next.node.first + next.place] ?? 0;
    if (box && (y < box.scrollTop || y > box.scrollTop + box.clientHeight - 24)) {
      box.scrollTop = y - box.clientHeight / 2;
      requestAnimationFrame(() => (at.value = next));
    }
    const node = model.nodes.get(next.node.id);
    if (node) spoken.value = sentence(model, node, next.place);
  };

  return (
    <div class="map">
      <div class="map-view" ref={scroller} style={{ maxHeight: `${room.value}px` }}>
        <div class="map-space" style={{ height: `${shown?.height ?? 0}px` }}>
          <canvas
            ref={canvas}
            class="live"
            tabIndex={0}
            role="application"
            aria-roledescription="map"
            aria-label={`Map of ${plural(model.gpus, 'GPU')}. Arrow keys walk from GPU to GPU, Enter opens its node. The table view has the same in rows.`}
            onPointerMove={(event) => (at.value = point(event))}
            onPointerLeave={() => (at.value = null)}
            onClick={(event) => {
              const target = point(event);
              if (target) open(target);
            }}
            onKeyDown={walk}
            onBlur={() => (at.value = null)}
          />
          <Titles model={model} layout={shown} by={by} />
          {shown && at.value && <Cursor layout={shown} at={at.value} />}
        </div>
      </div>
      {shown && at.value && scroller.current && <Card model={model} layout={shown} at={at.value} scrolled={scroller.current.scrollTop} />}
      <p class="visually-hidden" role="status" aria-live="polite">
        {spoken.value}
      </p>
    </div>
  );
}

function first(layout: Layout): Hit | null {
  const block = layout.blocks[0];
  const node = block?.group.nodes[0];
  return block && node ? { group: block.group, node, place: 0 } : null;
}

function neighbour(layout: Layout, here: Hit, [dx, dy]: [number, number]): Hit | null {
  const x = layout.x[here.node.first + here.place] ?? 0;
  const y = layout.y[here.node.first + here.place] ?? 0;
  // Straight on until something is met, at most over the widest gap there is.
  for (let far = 1; far < 80; far += 1) {
    const found = hit(layout, x + 1 + dx * (layout.pitch + far - 1), y + 1 + dy * (layout.pitch + far - 1));
    if (found && (found.node !== here.node || found.place !== here.place)) return found;
  }
  return here;
}

function Titles({ model, layout, by }: { model: FleetModel; layout: Layout | null; by: Grouping }) {
  void model.version.value;
  if (!layout) return null;
  return (
    <>
      {layout.blocks.map((block) => {
        let gpus = 0;
        let bad = 0;
        for (const node of block.group.nodes) {
          gpus += node.gpus;
          for (let place = 0; place < node.gpus; place += 1) if (model.state[node.first + place] === UNHEALTHY) bad += 1;
        }
        const search = searchOf(model.nodes.get(block.group.nodes[0]?.id ?? ''), by);
        return (
          <a
            key={block.group.name}
            class="map-title"
            href={href('/nodes', { q: search })}
            style={{ left: `${block.x}px`, top: `${block.y}px`, width: `${block.width}px`, height: `${HEAD_PX}px` }}
          >
            <span class="map-name">
              <Text value={block.group.name} max={80} brief />
            </span>
            <span class="map-count num">{count(gpus)}</span>
            {bad > 0 && (
              <span class="map-bad tone-bad num" title={`${plural(bad, 'GPU')} unhealthy`}>
                <Glyph name="cross" />
                {bad}
              </span>
            )}
          </a>
        );
      })}
    </>
  );
}

/** A frame around the cell, and one around its node. */
function Cursor({ layout, at }: { layout: Layout; at: Hit }) {
  const x = layout.x[at.node.first] ?? 0;
  const y = layout.y[at.node.first] ?? 0;
  const columns = Math.min(at.node.gpus, NODE_COLUMNS);
  const lines = Math.ceil(at.node.gpus / NODE_COLUMNS);
  const gap = layout.pitch - layout.cell;
  return (
    <>
      <span
        class="map-node"
        style={{ left: `${x - 2}px`, top: `${y - 2}px`, width: `${columns * layout.pitch - gap + 4}px`, height: `${lines * layout.pitch - gap + 4}px` }}
      />
      <span
        class="map-cell"
        style={{
          left: `${(layout.x[at.node.first + at.place] ?? 0) - 1}px`,
          top: `${(layout.y[at.node.first + at.place] ?? 0) - 1}px`,
          width: `${layout.cell + 2}px`,
          height: `${layout.cell + 2}px`,
        }}
      />
    </>
  );
}

const CARD_WIDTH = 280;

function Card({ model, layout, at, scrolled }: { model: FleetModel; layout: Layout; at: Hit; scrolled: number }) {
  void model.version.value;
  const node = model.nodes.get(at.node.id);
  if (!node) return null;
  const gpu = node.first + at.place;
  const x = (layout.x[gpu] ?? 0) + layout.pitch + 10;
  const left = x + CARD_WIDTH > layout.width ? Math.max(0, x - CARD_WIDTH - layout.pitch - 22) : x;
  const top = (layout.y[gpu] ?? 0) - scrolled + layout.pitch + 6;
  const state = GPU_STATES[model.state[gpu] ?? 0];
  const watts = model.power[gpu] ?? NONE_W;
  const memory = model.memory[gpu] ?? NONE;
  return (
    <div class="map-card" style={{ transform: `translate(${Math.round(left)}px, ${Math.round(top)}px)` }} aria-hidden="true">
      <p class="map-card-head">
        <strong>
          <Text value={node.id} max={60} brief mono /> <span class="muted">GPU {at.place}</span>
        </strong>
        {state && <Badge look={state} />}
      </p>
      <dl>
        <Row name="Model" value={node.model} />
        <Row name="Pool" value={node.pool} />
        <Row name="Place" value={groupOf(node, node.rack ? 'rack' : 'zone')} />
        <Row name="Temperature" value={measured(model.temperature[gpu], NONE, ' °C')} />
        <Row name="Power" value={measured(watts, NONE_W, ' W')} />
        <Row name="Utilization" value={measured(model.utilization[gpu], NONE, ' %')} />
        <Row name="Memory" value={memory === NONE ? '–' : `${memory} %${node.memory_total ? ` of ${bytes(node.memory_total)}` : ''}`} />
        <Row name="ECC errors" value={`${node.ce?.[at.place] ?? '–'} corrected, ${node.ue?.[at.place] ?? '–'} not`} />
      </dl>
      <p class="map-card-foot">
        <Badge look={lookOf(NODE_STATUS, node.status)} quiet />
        <Badge look={lookOf(HEALTH, node.health)} quiet />
        {node.liveness !== 'Fresh' && <Badge look={lookOf(LIVENESS, node.liveness)} quiet />}
      </p>
    </div>
  );
}

function Row({ name, value }: { name: string; value: string | undefined }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class="num">
        <Text value={value || '–'} max={60} brief />
      </dd>
    </div>
  );
}

function measured(value: number | undefined, none: number, unit: string): string {
  return value === undefined || value === none ? '–' : `${value}${unit}`;
}

/** The card, read aloud. */
function sentence(model: FleetModel, node: FleetNode, place: number): string {
  const gpu = node.first + place;
  const state = GPU_STATES[model.state[gpu] ?? 0]?.word ?? '';
  return `${node.id}, GPU ${place}: ${state}, ${measured(model.temperature[gpu], NONE, ' degrees')}, ${measured(model.utilization[gpu], NONE, ' percent busy')}`;
}
