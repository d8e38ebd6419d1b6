/**
 * Every GPU of the fleet, as the server tells it: one stream that begins with everything and then sends what changed,
 * each second. Kept in typed arrays, so that 80,000 GPUs cost a megabyte and an update costs a few stores.
 */
import { signal, type Signal } from '@preact/signals';
import { address, FLEET, type Problem, type Query } from './api';
import { Stream } from './stream';
import type { HealthStatus, Liveness, NodeStatus } from './types';
import type { StateLook } from './states';

/** One node, as the stream sends it. Arrays are by the GPU's place in the node. */
export interface FleetRow {
  id: string;
  pool?: string;
  cluster?: string;
  provider?: string;
  region?: string;
  zone?: string;
  rack?: string;
  machine_type?: string;
  model?: string;
  labels?: Record<string, string>;
  status: NodeStatus;
  health: HealthStatus;
  liveness: Liveness;
  revision: number;
  gpus: number;
  /** Places of GPUs with an unhealthy finding, and with a degraded one. */
  bad?: number[];
  warn?: number[];
  memory_total?: number;
  at?: number;
  /** °C, watts, utilization %, memory used %, ECC errors corrected and not. */
  t?: (number | null)[];
  w?: (number | null)[];
  u?: (number | null)[];
  m?: (number | null)[];
  ce?: (number | null)[];
  ue?: (number | null)[];
}

export type FleetSample = Pick<FleetRow, 'id' | 'at' | 't' | 'w' | 'u' | 'm' | 'ce' | 'ue'>;

export type FleetMessage =
  | { type: 'SNAPSHOT'; at: number; revision: number; nodes: FleetRow[]; more: boolean }
  | { type: 'SAMPLES'; at: number; revision: number; nodes: FleetRow[]; samples: FleetSample[]; gone: string[] };

/** A GPU's state on the map. The order is that of the legend. */
export const GPU_STATES: readonly (StateLook & { key: string })[] = [
  { key: 'busy', word: 'Busy', tone: 'ok', glyph: 'dot', means: 'Healthy, in service, and at work.' },
  { key: 'idle', word: 'Idle', tone: 'idle', glyph: 'ring', means: 'Healthy, in service, and used for less than 5 %.' },
  { key: 'degraded', word: 'Degraded', tone: 'warn', glyph: 'triangle', means: 'Something is wrong that does not stop work.' },
  { key: 'unhealthy', word: 'Unhealthy', tone: 'bad', glyph: 'cross', means: 'This GPU, or its whole node, must not be used.' },
  { key: 'draining', word: 'Draining', tone: 'move', glyph: 'half', means: 'Its node is being emptied.' },
  { key: 'cordoned', word: 'Cordoned', tone: 'held', glyph: 'bar', means: 'Its node takes no new work.' },
  { key: 'unreachable', word: 'Unreachable', tone: 'gone', glyph: 'dash', means: 'Its node is silent.' },
  { key: 'unknown', word: 'Unknown', tone: 'unknown', glyph: 'query', means: 'Its node has not reported yet.' },
];

export const BUSY = 0;
export const IDLE = 1;
export const DEGRADED = 2;
export const UNHEALTHY = 3;
export const DRAINING = 4;
export const CORDONED = 5;
export const UNREACHABLE = 6;
export const UNKNOWN = 7;

/** Less than this is no work, but what a driver does by itself. */
const IDLE_BELOW_PERCENT = 5;

/** What was not measured, in the byte and word arrays. */
export const NONE = 255;
export const NONE_W = 65_535;

/** The state of one GPU: its own fault first, then what became of its node. Pure. */
export function gpuState(row: FleetRow, place: number): number {
  if (row.bad?.includes(place)) return UNHEALTHY;
  if (row.liveness === 'Unreachable') return UNREACHABLE;
  if (row.status === 'DRAINING') return DRAINING;
  if (row.status === 'CORDONED') return CORDONED;
  if (row.warn?.includes(place)) return DEGRADED;
  const named = (row.bad?.length ?? 0) + (row.warn?.length ?? 0) > 0;
  // A finding that names no GPU is about all of them; one that names another leaves this one in a sick machine.
  if (row.health === 'UNHEALTHY') return named ? DEGRADED : UNHEALTHY;
  if (row.health === 'DEGRADED' && !named) return DEGRADED;
  if (row.health === 'UNKNOWN') return UNKNOWN;
  const used = row.u?.[place];
  return used !== null && used !== undefined && used < IDLE_BELOW_PERCENT ? IDLE : BUSY;
}

export interface FleetNode extends FleetRow {
  /** Where its GPUs begin in the arrays. */
  first: number;
}

export interface FleetListener {
  /** These GPUs look different. */
  changed(first: number, count: number): void;
  /** Nodes came, went, or moved: lay out anew. */
  moved(): void;
}

export class FleetModel {
  readonly nodes = new Map<string, FleetNode>();
  /** GPUs by state. */
  readonly counts = new Int32Array(GPU_STATES.length);
  state = new Uint8Array(0);
  temperature = new Uint8Array(0);
  utilization = new Uint8Array(0);
  memory = new Uint8Array(0);
  power = new Uint16Array(0);

  /** Counts messages that changed something: read it to be drawn again. */
  readonly version: Signal<number> = signal(0);
  readonly ready: Signal<boolean> = signal(false);

  private used = 0;
  /** Places of nodes that went, by their GPUs: a page that is open for weeks outlives its nodes many times. */
  private readonly left = new Map<number, number[]>();
  private coming: FleetRow[] | null = null;
  private readonly listeners = new Set<FleetListener>();

  get gpus(): number {
    let total = 0;
    for (const count of this.counts) total += count;
    return total;
  }

  listen(listener: FleetListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The stream began anew: the next snapshot replaces everything. What is shown stays until it is complete. */
  begin(): void {
    this.coming = [];
  }

  take(message: FleetMessage): void {
    if (message.type === 'SNAPSHOT') this.snapshot(message);
    else this.samples(message);
  }

  private snapshot(message: FleetMessage & { type: 'SNAPSHOT' }): void {
    const coming = (this.coming ??= []);
    for (const row of message.nodes) coming.push(row);
    if (message.more) return;
    this.coming = null;
    this.nodes.clear();
    this.counts.fill(0);
    this.used = 0;
    this.left.clear();
    this.reserve(coming.reduce((sum, row) => sum + row.gpus, 0));
    for (const row of coming) this.add(row);
    this.ready.value = true;
    this.version.value += 1;
    for (const listener of this.listeners) listener.moved();
  }

  private samples(message: FleetMessage & { type: 'SAMPLES' }): void {
    let moved = false;
    for (const id of message.gone) {
      const node = this.nodes.get(id);
      if (!node) continue;
      this.remove(node);
      moved = true;
    }
    for (const row of message.nodes) moved = this.replace(row) || moved;
    for (const sample of message.samples) {
      const node = this.nodes.get(sample.id);
      if (!node) continue;
      Object.assign(node, sample);
      this.write(node);
    }
    if (moved) for (const listener of this.listeners) listener.moved();
    if (moved || message.nodes.length > 0 || message.samples.length > 0) this.version.value += 1;
  }

  /** Says whether the layout changes. */
  private replace(row: FleetRow): boolean {
    const old = this.nodes.get(row.id);
    const gone = row.status === 'TERMINATED';
    if (old && !gone && old.gpus === row.gpus && sameGroup(old, row)) {
      // A row without measurements is news about the node, not about its GPUs. Written into the node that is there:
      // the map's layout holds it too, and would keep the one it was laid out with beside each new one.
      Object.assign(old, { bad: [], warn: [] }, row, { first: old.first });
      this.write(old);
      return false;
    }
    if (old) this.remove(old);
    if (!gone) this.add(row);
    return old !== undefined || !gone;
  }

  private add(row: FleetRow): void {
    if (row.status === 'TERMINATED') return;
    const node: FleetNode = { ...row, first: this.place(row.gpus) };
    this.nodes.set(row.id, node);
    for (let place = 0; place < row.gpus; place += 1) {
      const state = gpuState(node, place);
      this.state[node.first + place] = state;
      this.counts[state] = (this.counts[state] ?? 0) + 1;
    }
    this.measure(node);
  }

  private remove(node: FleetNode): void {
    for (let place = 0; place < node.gpus; place += 1) {
      const state = this.state[node.first + place] ?? UNKNOWN;
      this.counts[state] = (this.counts[state] ?? 0) - 1;
    }
    this.nodes.delete(node.id);
    const left = this.left.get(node.gpus);
    if (left) left.push(node.first);
    else this.left.set(node.gpus, [node.first]);
  }

  /** Where so many GPUs go: where as many were, or at the end. */
  private place(gpus: number): number {
    const first = this.left.get(gpus)?.pop();
    if (first !== undefined) return first;
    this.reserve(this.used + gpus);
    this.used += gpus;
    return this.used - gpus;
  }

  private write(node: FleetNode): void {
    for (let place = 0; place < node.gpus; place += 1) {
      const at = node.first + place;
      const was = this.state[at] ?? UNKNOWN;
      const is = gpuState(node, place);
      if (was !== is) {
        this.state[at] = is;
        this.counts[was] = (this.counts[was] ?? 0) - 1;
        this.counts[is] = (this.counts[is] ?? 0) + 1;
      }
    }
    this.measure(node);
    for (const listener of this.listeners) listener.changed(node.first, node.gpus);
  }

  private measure(node: FleetNode): void {
    for (let place = 0; place < node.gpus; place += 1) {
      const at = node.first + place;
      this.temperature[at] = byte(node.t?.[place]);
      this.utilization[at] = byte(node.u?.[place]);
      this.memory[at] = byte(node.m?.[place]);
      const watts = node.w?.[place];
      this.power[at] = watts === null || watts === undefined ? NONE_W : Math.min(NONE_W - 1, Math.max(0, watts));
    }
  }

  /** Room for so many GPUs. */
  private reserve(size: number): void {
    if (size <= this.state.length) return;
    const room = Math.max(1024, Math.ceil(size * 1.25));
    this.state = grown(this.state, new Uint8Array(room));
    this.temperature = grown(this.temperature, new Uint8Array(room));
    this.utilization = grown(this.utilization, new Uint8Array(room));
    this.memory = grown(this.memory, new Uint8Array(room));
    this.power = grown(this.power, new Uint16Array(room));
  }
}

function grown<A extends Uint8Array | Uint16Array>(old: A, next: A): A {
  next.set(old);
  return next;
}

function byte(value: number | null | undefined): number {
  return value === null || value === undefined ? NONE : Math.min(NONE - 1, Math.max(0, Math.round(value)));
}

function sameGroup(a: FleetRow, b: FleetRow): boolean {
  return a.pool === b.pool && a.zone === b.zone && a.rack === b.rack && a.cluster === b.cluster && a.region === b.region;
}

/** The server ticks every second, also when nothing changed. */
const SILENT_MS = 6_000;

/** The stream, for as long as somebody looks. */
export class FleetStream {
  readonly model = new FleetModel();
  readonly error: Signal<Problem | null> = signal(null);
  private readonly stream: Stream;

  constructor(query: Query = {}) {
    this.stream = new Stream({
      address: () => address(`${FLEET}/fleet/gpus`, { ...query, watch: true }),
      silentMs: SILENT_MS,
      onOpen: () => this.model.begin(),
      onEvent: ({ event, data }) => {
        if (event === 'SNAPSHOT' || event === 'SAMPLES') this.model.take(JSON.parse(data) as FleetMessage);
        return event === 'BYE';
      },
      onProblem: (thrown) => {
        this.error.value = thrown?.problem ?? null;
        return false;
      },
    });
  }

  use(): () => void {
    return this.stream.use();
  }
}

/** The whole fleet, shared by the pages. */
export const fleet = new FleetStream({ every_ms: 1000 });
