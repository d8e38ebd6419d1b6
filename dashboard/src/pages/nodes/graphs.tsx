/** What the GPUs of a node measured: five graphs with DCGM's names, one line a GPU, live at their right edge. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type uPlot from 'uplot';
import { asProblem, FLEET, get, type Problem } from '../../lib/api';
import type { FleetStream } from '../../lib/fleet';
import { count } from '../../lib/format';
import { query, segment, setQuery } from '../../lib/router';
import type { LedgerEntry } from '../../lib/types';
import { Empty, ErrorBox, Spinner } from '../../ui/basics';
import { useUplot } from '../../ui/plot';
import { append, empty, fromHistory, type GpuHistory, METRICS, type Metric, newest, type Series, span } from './series';

/** What a graph can show at once; the server keeps an hour. */
const RANGES = [
  ['5m', 300],
  ['15m', 900],
  ['1h', 3600],
] as const;

/** The browser may be asked to draw once a second; more is not seen. */
const DRAW_EVERY_MS = 1_000;

interface Props {
  id: string;
  gpus: number;
  stream: FleetStream;
  /** Marked on the graphs. */
  marks: readonly LedgerEntry[];
}

export function Graphs({ id, gpus, stream, marks }: Props) {
  const series = useMemo(() => empty(gpus), [id, gpus]);
  const loaded = useSignal(false);
  const problem = useSignal<Problem | null>(null);
  const tick = useSignal(0);
  const range = RANGES.find(([name]) => name === query.value.get('range')) ?? RANGES[1];
  const chosen = Number.parseInt(query.value.get('gpu') ?? '', 10);
  const selected = chosen >= 0 && chosen < gpus ? chosen : null;

  useEffect(() => {
    const abort = new AbortController();
    get<GpuHistory>(`${FLEET}/nodes/${segment(id)}/metrics`, {}, abort.signal)
      .then((history) => {
        fromHistory(series, history);
        loaded.value = true;
        tick.value += 1;
      })
      .catch((thrown: unknown) => {
        if (!abort.signal.aborted) problem.value = asProblem(thrown);
      });
    return () => abort.abort();
  }, [id, gpus]);

  useEffect(() => {
    let drawn = 0;
    return stream.model.version.subscribe(() => {
      const node = stream.model.nodes.get(id);
      if (!node || !append(series, node)) return;
      if (Date.now() - drawn < DRAW_EVERY_MS * 0.8) return;
      drawn = Date.now();
      tick.value += 1;
    });
  }, [stream, id, gpus]);

  if (gpus === 0) return <Empty title="This node has no GPU">There is nothing to measure.</Empty>;
  if (problem.value && series.at.length === 0) return <ErrorBox problem={problem.value} />;
  if (!loaded.value && series.at.length === 0) return <Spinner what="Reading measurements" />;
  if (series.at.length === 0)
    return (
      <Empty title="Nothing is measured yet">
        An agent sends what its GPUs measure every few seconds; the graphs begin with the first of it. Nodes that report only their health have none.
      </Empty>
    );
  return (
    <div class="graphs">
      <div class="graphs-head">
        <span class="segments" role="group" aria-label="Time range">
          {RANGES.map(([name]) => (
            <button key={name} type="button" aria-pressed={name === range[0]} onClick={() => setQuery({ range: name === '15m' ? null : name })}>
              {name}
            </button>
          ))}
        </span>
        <span class="graphs-gpus" role="group" aria-label="GPU to bring forward">
          {Array.from({ length: gpus }, (_, i) => (
            <button
              key={i}
              type="button"
              class={`gpu-key gpu-${i % 8}`}
              aria-pressed={selected === i}
              aria-label={`GPU ${i}`}
              onClick={() => setQuery({ gpu: selected === i ? null : String(i) })}
            >
              <i aria-hidden="true" />
              {i}
            </button>
          ))}
        </span>
      </div>
      <div class="graphs-grid">
        {METRICS.map((metric) => (
          <Graph key={metric.key} metric={metric} series={series} tick={tick.value} seconds={range[1]} selected={selected} marks={marks} />
        ))}
      </div>
    </div>
  );
}

interface GraphProps {
  metric: Metric;
  series: Series;
  tick: number;
  seconds: number;
  selected: number | null;
  marks: readonly LedgerEntry[];
}

const SYNC = 'node';

function Graph({ metric, series, tick, seconds, selected, marks }: GraphProps) {
  const state = useRef({ seconds, marks });
  state.current = { seconds, marks };
  const box = useUplot(
    150,
    ({ colour, axis }) => ({
      padding: [8, 16, 0, 0],
      legend: { show: false },
      cursor: { sync: { key: SYNC }, drag: { x: false, y: false }, points: { size: 5 } },
      scales: {
        x: { time: true, range: (_, min, max) => span(min, max, state.current.seconds) },
        y: { range: (_, min, max) => metric.range(min, max) },
      },
      axes: [
        { ...axis, size: 26, space: 70, values: (_, splits, __, ___, step) => splits.map((at) => timeOfDay(at, step)) },
        { ...axis, size: 44, space: 32, values: (_, splits) => splits.map((value) => metric.axis(value)) },
      ],
      series: [
        {},
        ...series.gpus.map((_, i) => ({
          label: `GPU ${i}`,
          stroke: colour(`--gpu-${i % 8}`),
          width: selected === i ? 2.2 : 1.2,
          alpha: selected === null || selected === i ? 1 : 0.18,
          points: { show: false },
          spanGaps: false,
        })),
      ],
      hooks: { draw: [(plot) => drawMarks(plot, state.current.marks, colour('--bad'))] },
    }),
    () => [series.at, ...series.gpus.map((gpu) => gpu[metric.key])] as uPlot.AlignedData,
    [series, selected],
    [series, tick, seconds, marks],
  );

  const now = newest(series, metric.key);
  return (
    <figure class="graph panel" aria-label={metric.title}>
      <figcaption>
        <span class="graph-title">
          {metric.title} <small class="mono">{metric.field}</small>
        </span>
        <span class="graph-now live num">
          {selected !== null ? `GPU ${selected}: ${metric.say(series.gpus[selected]?.[metric.key].at(-1) ?? null)}` : metric.summary(now)}
        </span>
      </figcaption>
      <div ref={box} class="graph-box" role="img" aria-label={`${metric.title} over time. Now: ${metric.summary(now)}, of ${count(series.gpus.length)} GPUs.`} />
    </figure>
  );
}

function timeOfDay(at: number, step: number): string {
  return new Date(at * 1000).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', ...(step < 60 ? { second: '2-digit' } : {}) });
}

/** An upright line where something happened to the node. */
function drawMarks(plot: uPlot, marks: readonly LedgerEntry[], colour: string): void {
  const { ctx } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1;
  ctx.setLineDash([3, 3]);
  const from = plot.scales['x']?.min ?? 0;
  for (const mark of marks) {
    const at = Date.parse(mark.at) / 1000;
    if (at < from) continue;
    const x = Math.round(plot.valToPos(at, 'x', true)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(x, plot.bbox.top);
    ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
