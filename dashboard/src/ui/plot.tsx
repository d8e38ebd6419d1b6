/** A plot of numbers over time. Colours come from tokens.css, so that both themes are served. */
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
  /** The places on the axis: milliseconds since 1970, or seconds since the beginning where `since` is true. */
  at: readonly number[];
  lines: readonly PlotLine[];
  format: (value: number) => string;
  /** Words for a place on the axis. */
  place: (at: number) => string;
  height?: number;
  /** The least range of the upright axis. */
  from?: number;
  to?: number;
  /** Plots with the same key move their cursors together. */
  sync?: string;
}

/** From `from` or lower to a little above the highest; or exactly to `to`. */
export function range(low: number | null, high: number | null, from: number, to?: number): [number, number] {
  const bottom = Math.min(from, low ?? from);
  if (to !== undefined) return [bottom, Math.max(to, high ?? to)];
  const top = Math.max(high ?? bottom, bottom);
  return [bottom, top === bottom ? bottom + 1 : top + (top - bottom) * 0.06];
}

export function Plot({ title, at, lines, format, place, height = 170, from = 0, to, sync }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const dark = shownTheme.value;
  useEffect(() => {
    const host = box.current;
    if (!host) return undefined;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour('--text-3'), grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line'), width: 1, size: 4 }, font: '11px Inter, sans-serif' };
    const plot = new uPlot(
      {
        width: host.clientWidth || 600,
        height,
        cursor: { y: false, points: { size: 6 }, ...(sync ? { sync: { key: sync } } : {}) },
        legend: { live: true },
        scales: { x: { time: false }, y: { range: (_, low, high) => range(low, high, from, to) } },
        axes: [
          { ...axis, values: (_, ticks) => ticks.map(place), space: 74, size: 26 },
          { ...axis, values: (_, ticks) => ticks.map(format), size: 56 },
        ],
        series: [
          { label: 'at', value: (_, value) => (value === null ? '' : place(value)) },
          ...lines.map((line) => ({
            label: line.name,
            stroke: colour(line.colour),
            width: 1.5,
            points: { show: false },
            ...(line.area ? { fill: `${colour(line.colour)}22` } : {}),
            ...(line.dashed ? { dash: [5, 4] } : {}),
            ...(line.steps && uPlot.paths.stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}),
            value: (_: uPlot, value: number | null) => (value === null ? '–' : format(value)),
          })),
        ],
      },
      [at as number[], ...lines.map((line) => line.values as number[])],
      host,
    );
    const resize = new ResizeObserver(() => plot.setSize({ width: host.clientWidth, height }));
    resize.observe(host);
    return () => {
      resize.disconnect();
      plot.destroy();
    };
  }, [at, lines, dark]);
  return (
    <figure class="plot" aria-label={title}>
      <figcaption>{title}</figcaption>
      <div ref={box} />
    </figure>
  );
}
