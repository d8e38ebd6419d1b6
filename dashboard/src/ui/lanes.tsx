/** Adapters over time: a lane each, a bar for each attempt; a bar opens what was said. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { duration, fullTime } from '../lib/format';
import type { Bar, Lane, Lanes } from '../lib/resource';
import { ticks } from '../lib/resource';
import { ADAPTER_PHASE, lookOf } from '../lib/states';
import { plain } from '../lib/text';
import { Age, Badge, Clock, Text } from './basics';
import { Glyph } from './glyph';

/** A finger needs this much; what is narrower is drawn, opened by a click near it, and listed in the history. */
const TARGET_PX = 24;

export function SwimLanes({ lanes }: { lanes: Lanes }) {
  const chosen = useSignal<string | null>(null);
  const grid = useRef<HTMLDivElement>(null);
  const width = useSignal(800);
  useEffect(() => {
    const track = grid.current?.querySelector('.lane-track');
    if (!track) return undefined;
    const watch = new ResizeObserver(() => (width.value = track.clientWidth));
    watch.observe(track);
    return () => watch.disconnect();
  }, [lanes.lanes.length > 0]);
  const nearest = (event: MouseEvent, lane: Lane) => {
    const track = event.currentTarget as HTMLElement;
    if (event.target instanceof Element && event.target.closest('button')) return;
    const at = lanes.from + ((event.clientX - track.getBoundingClientRect().left) / track.clientWidth) * span;
    const bar = lane.bars.find((one) => one.from <= at && at <= one.to) ?? lane.bars.at(-1);
    if (bar) chosen.value = `${lane.adapter}/${bar.key}`;
  };
  const span = Math.max(1, lanes.to - lanes.from);
  const place = (at: number) => `${((Math.min(at, lanes.to) - lanes.from) / span) * 100}%`;
  const marks = ticks(lanes.from, lanes.to);
  const found = lanes.lanes.flatMap((lane) => lane.bars.map((bar) => ({ lane, bar }))).find(({ lane, bar }) => `${lane.adapter}/${bar.key}` === chosen.value);
  return (
    <div class="lanes panel">
      <div class="lanes-grid" role="list" aria-label="Adapters over time" ref={grid}>
        {lanes.lanes.map((lane) => (
          <div key={lane.adapter} class="lane" role="listitem">
            <div class="lane-name">
              <Text value={lane.adapter} max={40} brief />
              {lane.line && <Badge look={lookOf(ADAPTER_PHASE, lane.line.phase)} quiet />}
            </div>
            <div class="lane-track" onClick={(event) => nearest(event, lane)}>
              {lanes.generations.slice(1).map((one) => (
                <span key={one.generation} class="lane-generation" style={{ left: place(one.at) }} />
              ))}
              {lane.bars.map((bar) => {
                const look = lookOf(ADAPTER_PHASE, bar.phase);
                const key = `${lane.adapter}/${bar.key}`;
                const thin = ((bar.to - bar.from) / span) * width.value < TARGET_PX;
                if (thin)
                  return (
                    <span
                      key={key}
                      class={`lane-bar lane-thin tone-${look.tone}`}
                      style={{ left: place(bar.from), width: `max(3px, calc(${((bar.to - bar.from) / span) * 100}% - 1px))` }}
                      title={`${look.word}, ${duration(bar.to - bar.from)}: ${plain(bar.message)}`}
                    />
                  );
                return (
                  <button
                    key={key}
                    type="button"
                    class={`lane-bar tone-${look.tone}${bar.open ? ' lane-open' : ''}`}
                    style={{ left: place(bar.from), width: `max(7px, calc(${((bar.to - bar.from) / span) * 100}% - 1px))` }}
                    aria-pressed={chosen.value === key}
                    aria-label={`${plain(lane.adapter, 40)}: ${look.word} for ${duration(bar.to - bar.from)}${bar.reports > 1 ? `, ${bar.reports} reports` : ''}. ${plain(bar.message)}`}
                    title={`${look.word}, ${duration(bar.to - bar.from)}: ${plain(bar.message)}`}
                    onClick={() => (chosen.value = chosen.value === key ? null : key)}
                  >
                    <Glyph name={look.glyph} />
                    <span class="lane-word">
                      {look.word}
                      {bar.reports > 1 && ` ×${bar.reports}`}
                    </span>
                  </button>
                );
              })}
              {lane.bars.length === 0 && <span class="lane-none">{lane.line ? <Text value={lane.line.message} max={120} brief /> : 'no report'}</span>}
            </div>
          </div>
        ))}
        <div class="lane lane-axis" aria-hidden="true">
          <div class="lane-name" />
          <div class="lane-track">
            {marks.map((at) => (
              <span key={at} class="lane-tick" style={{ left: place(lanes.from + at) }} title={fullTime(lanes.from + at)}>
                {at === 0 ? '0' : `+${duration(at)}`}
              </span>
            ))}
            {lanes.generations.slice(1).map((one) => (
              <span key={one.generation} class="lane-tick lane-gen" style={{ left: place(one.at) }}>
                gen {one.generation}
              </span>
            ))}
          </div>
        </div>
      </div>
      {found && <Said adapter={found.lane.adapter} bar={found.bar} />}
    </div>
  );
}

function Said({ adapter, bar }: { adapter: string; bar: Bar }) {
  return (
    <div class="lane-said" role="status">
      <p>
        <Badge look={lookOf(ADAPTER_PHASE, bar.phase)} /> <strong><Text value={adapter} max={60} /></strong>
        {bar.reason && (
          <>
            {' '}
            <Text value={bar.reason} mono max={80} />
          </>
        )}
      </p>
      <p>
        <Text value={bar.message || 'It gave no message.'} />
      </p>
      <p class="muted">
        From <Clock at={new Date(bar.from).toISOString()} /> for {duration(bar.to - bar.from)}
        {bar.open ? ', and still' : ''}, <Age at={bar.from} />, at generation {bar.generation}
        {bar.reports > 1 && `, ${bar.reports} reports alike`}
        {bar.discarded && (
          <>
            . Not counted: <Text value={bar.discarded} />
          </>
        )}
      </p>
    </div>
  );
}
