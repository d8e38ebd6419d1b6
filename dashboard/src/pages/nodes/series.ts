/** Measurements over time, in the columns that uPlot draws. Pure. */
import type { FleetNode } from '../../lib/fleet';
import { count } from '../../lib/format';
import type { MetricsPoint } from '../../lib/types';

export type MetricKey = 'temperature' | 'power' | 'utilization' | 'memory_percent' | 'ecc';
type Column = (number | null)[];
export type GpuSeries = Record<MetricKey, Column>;

export interface Series {
  /** Seconds since 1970, growing. */
  at: number[];
  gpus: GpuSeries[];
}

/** What `GET …/metrics` says of each GPU; as long as its `items`. */
export interface GpuHistory {
  items: readonly Pick<MetricsPoint, 'at'>[];
  gpus?: {
    index: number;
    temperature?: Column;
    power?: Column;
    utilization?: Column;
    memory_percent?: Column;
    ecc_corrected?: Column;
    ecc_uncorrected?: Column;
  }[];
}

/** An hour in seconds, which is what the server keeps; older points are let go. */
const POINTS_MAX = 3_600;

export interface Metric {
  key: MetricKey;
  title: string;
  /** What DCGM calls it. */
  field: string;
  say: (value: number | null) => string;
  /** Of all GPUs now. */
  summary: (values: number[]) => string;
  axis: (value: number) => string;
  range: (min: number | null, max: number | null) => [number, number];
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
const total = (values: number[]) => values.reduce((sum, value) => sum + value, 0);
const none = (values: number[], say: () => string) => (values.length === 0 ? 'not measured' : say());
const unit = (name: string) => (value: number | null) => (value === null ? '–' : `${Math.round(value)} ${name}`);

/** In the order of the dashboard that everybody knows. */
export const METRICS: readonly Metric[] = [
  {
    key: 'temperature',
    title: 'GPU temperature',
    field: 'DCGM_FI_DEV_GPU_TEMP',
    say: unit('°C'),
    summary: (values) => none(values, () => `avg ${Math.round(mean(values))} °C, max ${Math.round(Math.max(...values))} °C`),
    axis: (value) => `${value}°`,
    range: (min, max) => [Math.min(20, Math.floor((min ?? 20) / 10) * 10), Math.max(90, Math.ceil((max ?? 0) / 10) * 10)],
  },
  {
    key: 'power',
    title: 'GPU power usage',
    field: 'DCGM_FI_DEV_POWER_USAGE',
    say: unit('W'),
    summary: (values) => none(values, () => `total ${count(Math.round(total(values)))} W`),
    axis: (value) => `${value} W`,
    range: (_, max) => [0, Math.max(400, Math.ceil((max ?? 0) / 100) * 100)],
  },
  {
    key: 'utilization',
    title: 'GPU utilization',
    field: 'DCGM_FI_DEV_GPU_UTIL',
    say: unit('%'),
    summary: (values) => none(values, () => `avg ${Math.round(mean(values))} %`),
    axis: (value) => `${value} %`,
    range: () => [0, 100],
  },
  {
    key: 'memory_percent',
    title: 'Framebuffer memory used',
    field: 'DCGM_FI_DEV_FB_USED',
    say: unit('%'),
    summary: (values) => none(values, () => `avg ${Math.round(mean(values))} %`),
    axis: (value) => `${value} %`,
    range: () => [0, 100],
  },
  {
    key: 'ecc',
    title: 'ECC errors since the driver was loaded',
    field: 'DCGM_FI_DEV_ECC_SBE/DBE_VOL_TOTAL',
    say: (value) => (value === null ? '–' : count(value)),
    summary: (values) => none(values, () => count(total(values))),
    axis: (value) => (Number.isInteger(value) ? count(value) : ''),
    range: (_, max) => [0, Math.max(4, Math.ceil((max ?? 0) * 1.2))],
  },
];

export function empty(gpus: number): Series {
  const column = (): GpuSeries => ({ temperature: [], power: [], utilization: [], memory_percent: [], ecc: [] });
  return { at: [], gpus: Array.from({ length: gpus }, column) };
}

/** Put what was recorded before what has come meanwhile. */
export function fromHistory(series: Series, history: GpuHistory): void {
  const live = { at: series.at.slice(), gpus: series.gpus.map((gpu) => ({ ...gpu })) };
  const times = history.items.map((item) => Date.parse(item.at) / 1000);
  const first = live.at[0] ?? Number.POSITIVE_INFINITY;
  const keep = times.filter((at) => at < first).length;
  series.at = [...times.slice(0, keep), ...live.at];
  for (const [i, gpu] of series.gpus.entries()) {
    const old = history.gpus?.find((one) => one.index === i);
    const before = (column: Column | undefined): Column => Array.from({ length: keep }, (_, at) => column?.[at] ?? null);
    const was = live.gpus[i];
    gpu.temperature = [...before(old?.temperature), ...(was?.temperature ?? [])];
    gpu.power = [...before(old?.power), ...(was?.power ?? [])];
    gpu.utilization = [...before(old?.utilization), ...(was?.utilization ?? [])];
    gpu.memory_percent = [...before(old?.memory_percent), ...(was?.memory_percent ?? [])];
    const ecc = Array.from({ length: keep }, (_, at) => added(old?.ecc_corrected?.[at], old?.ecc_uncorrected?.[at]));
    gpu.ecc = [...ecc, ...(was?.ecc ?? [])];
  }
}

/** Add what the stream has just told; says whether it was new. */
export function append(series: Series, node: FleetNode): boolean {
  const at = (node.at ?? 0) / 1000;
  if (at <= (series.at.at(-1) ?? 0)) return false;
  series.at.push(at);
  for (const [i, gpu] of series.gpus.entries()) {
    gpu.temperature.push(node.t?.[i] ?? null);
    gpu.power.push(node.w?.[i] ?? null);
    gpu.utilization.push(node.u?.[i] ?? null);
    gpu.memory_percent.push(node.m?.[i] ?? null);
    gpu.ecc.push(added(node.ce?.[i], node.ue?.[i]));
  }
  const extra = series.at.length - POINTS_MAX;
  if (extra > 0) {
    series.at.splice(0, extra);
    for (const gpu of series.gpus) for (const column of Object.values(gpu)) column.splice(0, extra);
  }
  return true;
}

/** The newest value of each GPU that has one. */
export function newest(series: Series, key: MetricKey): number[] {
  return series.gpus.map((gpu) => gpu[key].at(-1)).filter((value): value is number => typeof value === 'number');
}

function added(a: number | null | undefined, b: number | null | undefined): number | null {
  return a === null || a === undefined ? (b ?? null) : a + (b ?? 0);
}

/** Less than a minute would make noise look like news. */
const SPAN_MIN_S = 60;

/** As much as was asked for, or since the first measurement where that is later: an empty graph says nothing. */
export function span(first: number | null, last: number | null, seconds: number): [number, number] {
  const end = last ?? 0;
  return [Math.max(end - seconds, Math.min(first ?? end, end - SPAN_MIN_S)), end];
}
