/** Plots of numbers over time: the one place that speaks to uPlot. Colours come from tokens.css, so that both themes are served. */
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { shownTheme } from '../lib/theme';

export interface PlotLine {
  name: string;
  values: readonly (number | null)[];
  /** A colour of tokens.css, such as `--ok-fill`. */
  colour: string;
  /** Filled below. */
  area?: boolean;
  dashed?: boolean;
  /** A line with corners, for counts that hold until they change. */
  steps?: boolean;
}

interface Props {
  title: string;
  /** The places on the axis: seconds since the beginning. */
  at: readonly number[];
  lines: readonly PlotLine[];
  format: (value: number) => string;
  /** Words for a place on the axis. */
  place: (at: number) => string;
  height?: number;
  /** Of things that are counted: nothing is marked between two whole numbers. */
  whole?: boolean;
  /** The least range of the upright axis. */
  from?: number;
  to?: number;
  /** Plots with the same key move their cursors together. */
  sync?: string;
}

/** Narrower, and the axis leaves nothing to plot in. */
const WIDTH_MIN = 200;

/** Steps of the axes: whole numbers, and spans as people say them. */
const WHOLE = [1, 2, 5].flatMap((step) => [0, 1, 2, 3, 4, 5].map((zeros) => step * 10 ** zeros)).sort((a, b) => a - b);
const SPANS = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 10_800, 14_400, 21_600, 43_200, ...[1, 2, 5, 7, 14, 30, 60, 90, 180].map((days) => days * 86_400)];

/** From `from` or lower to a little above the highest; or exactly to `to`. */
export function range(low: number | null, high: number | null, from: number, to?: number): [number, number] {
  const bottom = Math.min(from, low ?? from);
  if (to !== undefined) return [bottom, Math.max(to, high ?? to)];
  const top = Math.max(high ?? bottom, bottom);
  return [bottom, top === bottom ? bottom + 1 : top + (top - bottom) * 0.06];
}

/** What a plot is painted with, in the theme that is shown. */
export interface Paint {
  colour: (token: string) => string;
  /** What every axis has. */
  axis: uPlot.Axis;
}

function paint(): Paint {
  const style = getComputedStyle(document.documentElement);
  const colour = (token: string) => style.getPropertyValue(token).trim();
  return { colour, axis: { stroke: colour('--text-3'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '11px Inter, system-ui, sans-serif' } };
}

/**
 * A plot in the element of the reference, as wide as it. Made anew when one of `made`, or the theme, changes; else it only
 * gets its `data` again whenever one of `drawn` does.
 */
export function useUplot(height: number, options: (paint: Paint) => Omit<uPlot.Options, 'width' | 'height'>, data: () => uPlot.AlignedData, made: readonly unknown[], drawn: readonly unknown[] = []): RefObject<HTMLDivElement | null> {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const theme = shownTheme.value;
  useEffect(() => {
    const host = box.current;
    if (!host) return undefined;
    const width = () => Math.max(WIDTH_MIN, host.clientWidth);
    const one = new uPlot({ ...options(paint()), width: width(), height }, data(), host);
    plot.current = one;
    const resize = new ResizeObserver(() => one.setSize({ width: width(), height }));
    resize.observe(host);
    return () => {
      resize.disconnect();
      one.destroy();
      plot.current = null;
    };
  }, [...made, theme]);
  useEffect(() => plot.current?.setData(data()), drawn);
  return box;
}

export function Plot({ title, at, lines, format, place, height = 170, whole = false, from = 0, to, sync }: Props) {
  const box = useUplot(
    height,
    ({ colour, axis }) => ({
      padding: [8, 20, 0, 0],
      cursor: { y: false, points: { size: 6 }, ...(sync ? { sync: { key: sync } } : {}) },
      legend: { live: true },
      scales: { x: { time: false }, y: { range: (_, low, high) => range(low, high, from, to) } },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map(place), incrs: SPANS, space: 74, size: 26 },
        { ...axis, values: (_, ticks) => ticks.map(format), ...(whole ? { incrs: WHOLE } : {}), size: 56 },
      ],
      series: [
        { label: 'at', value: (_, value) => (value === null || value === undefined ? '' : place(value)) },
        ...lines.map((line) => ({
          label: line.name,
          stroke: colour(line.colour),
          width: 1.5,
          points: { show: false },
          ...(line.area ? { fill: `${colour(line.colour)}22` } : {}),
          ...(line.dashed ? { dash: [5, 4] } : {}),
          ...(line.steps && uPlot.paths.stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}),
          value: (_: uPlot, value: number | null, _series: number, at: number | null) => (at === null ? '' : value === null ? '–' : format(value)),
        })),
      ],
    }),
    () => [at as number[], ...lines.map((line) => line.values as number[])],
    [at, lines],
  );
  return (
    <figure class="plot" aria-label={title}>
      <figcaption>{title}</figcaption>
      <div ref={box} />
    </figure>
  );
}
