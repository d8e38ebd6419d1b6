/**
 * Paints the map. One frame loop that sleeps while nothing changes: changed cells are painted alone, everything only
 * after a scroll, another layout, another colour or another theme.
 */
import { CORDONED, DEGRADED, DRAINING, UNHEALTHY, UNREACHABLE, type FleetModel } from '../../lib/fleet';
import { indexOf, palette, type Colour } from './colours';
import { HEAD_PX, type Layout } from './layout';

/** Beyond this many changed cells painting everything is cheaper. */
const DIRTY_MAX = 20_000;
/** Smaller cells have no room for a glyph; the sick ones are painted without their gap instead. */
const GLYPH_CELL_MIN = 9;

export class Painter {
  private layout: Layout | null = null;
  private colour: Colour = 'health';
  private colours: string[] = [];
  private background = '';
  private ink = '';
  private all = true;
  private frame = 0;
  private readonly dirty = new Int32Array(DIRTY_MAX);
  private dirtyCount = 0;
  private buckets: number[][] = [];
  private readonly context: CanvasRenderingContext2D | null;
  private ratio = 1;
  private width = 0;
  private height = 0;

  /** How many frames were painted, for the bench. */
  painted = 0;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly scroller: HTMLElement,
    private readonly model: FleetModel,
  ) {
    this.context = canvas.getContext('2d', { alpha: false });
  }

  setLayout(layout: Layout): void {
    this.layout = layout;
    this.invalidate();
  }

  setColour(colour: Colour): void {
    this.colour = colour;
    this.invalidate();
  }

  /** Colours of the theme that is shown now. */
  setTheme(): void {
    const style = getComputedStyle(document.documentElement);
    this.colours = palette(style);
    this.background = style.getPropertyValue('--surface').trim();
    this.ink = style.getPropertyValue('--on-fill').trim();
    this.invalidate();
  }

  resize(width: number, height: number): void {
    this.ratio = Math.min(3, devicePixelRatio || 1);
    this.width = width;
    this.height = height;
    this.canvas.width = Math.max(1, Math.round(width * this.ratio));
    this.canvas.height = Math.max(1, Math.round(height * this.ratio));
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.invalidate();
  }

  /** Paint everything with the next frame. */
  invalidate(): void {
    this.all = true;
    this.schedule();
  }

  /** Paint these GPUs with the next frame. */
  changed(first: number, count: number): void {
    if (this.all) return;
    if (this.dirtyCount + count > DIRTY_MAX) {
      this.invalidate();
      return;
    }
    for (let i = 0; i < count; i += 1) this.dirty[this.dirtyCount + i] = first + i;
    this.dirtyCount += count;
    this.schedule();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }

  private schedule(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.paint());
  }

  private paint(): void {
    this.frame = 0;
    this.painted += 1;
    const { context, layout } = this;
    if (!context || !layout) return;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const top = this.scroller.scrollTop;
    if (this.all) this.paintAll(context, layout, top);
    else this.paintDirty(context, layout, top);
    this.all = false;
    this.dirtyCount = 0;
  }

  private paintAll(context: CanvasRenderingContext2D, layout: Layout, top: number): void {
    context.fillStyle = this.background;
    context.fillRect(0, 0, this.width, this.height);
    const buckets = (this.buckets = this.colours.map((_, i) => this.buckets[i] ?? []));
    for (const bucket of buckets) bucket.length = 0;
    for (const block of layout.blocks) {
      if (block.y + block.height < top || block.y > top + this.height) continue;
      const firstLine = Math.max(0, Math.floor((top - block.y - HEAD_PX) / block.nodeHeight));
      const lastLine = Math.ceil((top + this.height - block.y - HEAD_PX) / block.nodeHeight);
      const nodes = block.group.nodes;
      const end = Math.min(nodes.length, lastLine * block.columns);
      for (let i = firstLine * block.columns; i < end; i += 1) {
        const node = nodes[i];
        if (!node) continue;
        for (let place = 0; place < node.gpus; place += 1) {
          const gpu = node.first + place;
          buckets[indexOf(this.model, this.colour, gpu)]?.push(gpu);
        }
      }
    }
    // One colour after the other: changing the brush is what costs.
    for (const [i, bucket] of buckets.entries()) {
      if (bucket.length === 0) continue;
      context.fillStyle = this.colours[i] ?? '';
      for (const gpu of bucket) this.cell(context, layout, gpu, top);
    }
    if (layout.cell >= GLYPH_CELL_MIN && this.colour === 'health')
      for (const bucket of buckets) for (const gpu of bucket) this.glyph(context, layout, gpu, top);
  }

  private paintDirty(context: CanvasRenderingContext2D, layout: Layout, top: number): void {
    for (let i = 0; i < this.dirtyCount; i += 1) {
      const gpu = this.dirty[i] ?? 0;
      const x = layout.x[gpu] ?? -1;
      const y = (layout.y[gpu] ?? -1) - top;
      if (x < 0 || y < -layout.pitch || y > this.height) continue;
      context.fillStyle = this.background;
      context.fillRect(x, y, layout.pitch, layout.pitch);
      context.fillStyle = this.colours[indexOf(this.model, this.colour, gpu)] ?? '';
      this.cell(context, layout, gpu, top);
      if (layout.cell >= GLYPH_CELL_MIN && this.colour === 'health') this.glyph(context, layout, gpu, top);
    }
  }

  private cell(context: CanvasRenderingContext2D, layout: Layout, gpu: number, top: number): void {
    const x = layout.x[gpu] ?? -1;
    if (x < 0) return;
    const y = (layout.y[gpu] ?? 0) - top;
    const full = layout.cell < GLYPH_CELL_MIN && this.colour === 'health' && this.model.state[gpu] === UNHEALTHY;
    const size = full ? layout.pitch : layout.cell;
    context.fillRect(x, y, size, size);
  }

  /** Told apart without colour: a cross, a triangle, half, a bar, a dash. */
  private glyph(context: CanvasRenderingContext2D, layout: Layout, gpu: number, top: number): void {
    const state = this.model.state[gpu] ?? 0;
    if (state < DEGRADED || state > UNREACHABLE) return;
    const size = layout.cell;
    const x = layout.x[gpu] ?? 0;
    const y = (layout.y[gpu] ?? 0) - top;
    const inset = size * 0.28;
    context.strokeStyle = this.ink;
    context.fillStyle = this.ink;
    context.lineWidth = Math.max(1.2, size / 9);
    context.beginPath();
    if (state === UNHEALTHY) {
      context.moveTo(x + inset, y + inset);
      context.lineTo(x + size - inset, y + size - inset);
      context.moveTo(x + size - inset, y + inset);
      context.lineTo(x + inset, y + size - inset);
      context.stroke();
    } else if (state === DEGRADED) {
      context.moveTo(x + size / 2, y + inset);
      context.lineTo(x + size - inset, y + size - inset);
      context.lineTo(x + inset, y + size - inset);
      context.fill();
    } else if (state === DRAINING) {
      context.arc(x + size / 2, y + size / 2, size * 0.24, -Math.PI / 2, Math.PI / 2);
      context.fill();
    } else if (state === CORDONED || state === UNREACHABLE) {
      context.moveTo(x + inset, y + size / 2);
      context.lineTo(x + size - inset, y + size / 2);
      context.stroke();
    }
  }
}
