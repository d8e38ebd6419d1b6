/** Why a node is as it is, as a story: what happened, what was concluded, what was done. */
import { duration, time } from '../../lib/format';
import type { Glyph as GlyphName, Tone } from '../../lib/states';
import { shortUuids } from '../../lib/text';
import type { Why, WhyStep } from '../../lib/types';
import { Clock, Copy, Text } from '../../ui/basics';
import { Glyph } from '../../ui/glyph';

interface Look {
  word: string;
  tone: Tone;
  glyph: GlyphName;
}

const STEPS: Record<string, Look> = {
  registration: { word: 'Registered', tone: 'ok', glyph: 'check' },
  event: { word: 'Something happened', tone: 'bad', glyph: 'cross' },
  check: { word: 'A check said', tone: 'warn', glyph: 'triangle' },
  verdict: { word: 'A rule judged', tone: 'warn', glyph: 'query' },
  finding: { word: 'A finding stands', tone: 'warn', glyph: 'triangle' },
  cleared: { word: 'A finding ended', tone: 'ok', glyph: 'check' },
  health: { word: 'Health changed', tone: 'idle', glyph: 'half' },
  liveness: { word: 'Liveness changed', tone: 'idle', glyph: 'clock' },
  status: { word: 'Status changed', tone: 'idle', glyph: 'dot' },
  decision: { word: 'Argosy decided', tone: 'move', glyph: 'half' },
  held: { word: 'Argosy held back', tone: 'held', glyph: 'bar' },
  command: { word: 'The node was told', tone: 'move', glyph: 'clock' },
  result: { word: 'It was done', tone: 'ok', glyph: 'check' },
};

function lookOf(step: WhyStep): Look {
  return STEPS[step.type] ?? { word: step.type, tone: 'idle', glyph: 'dot' };
}

export function WhyStory({ why }: { why: Why }) {
  return (
    <div class="why panel">
      <p class="why-summary">
        <Text value={shortUuids(why.summary)} />
      </p>
      <Times steps={why.steps} />
      <ol class="story">
        {why.steps.map((step, i) => {
          const look = lookOf(step);
          return (
            <li key={`${step.revision}/${i}`} class={`tone-${look.tone}`}>
              <span class="story-glyph">
                <Glyph name={look.glyph} />
              </span>
              <div class="story-head">
                <strong>{look.word}</strong>
                <Clock at={step.at} />
                <span class="muted num">{since(why.steps[i - 1], step)}</span>
              </div>
              <p>
                <Text value={shortUuids(step.message)} />
              </p>
              {step.evidence && step.evidence.length > 0 && (
                <ul class="evidence">
                  {step.evidence.slice(0, 20).map((line, at) => (
                    <li key={at}>
                      <Text value={line} mono />
                    </li>
                  ))}
                </ul>
              )}
            </li>
          );
        })}
      </ol>
      {why.next && why.next.length > 0 && (
        <div class="why-next">
          <h2>What can be done</h2>
          <ul>
            {why.next.map((line) => (
              <li key={line}>
                <WithCommands text={shortUuids(line)} />
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}

/** From the first event to the first action, and to the end: the point of the whole product in one line. */
function Times({ steps }: { steps: readonly WhyStep[] }) {
  const from = time(steps.find((step) => step.type === 'event' || step.type === 'check' || step.type === 'liveness')?.at);
  const acted = time(steps.find((step) => step.type === 'decision')?.at);
  const ended = time(steps.findLast((step) => step.type === 'result')?.at);
  if (from === null || acted === null || acted < from) return null;
  return (
    <p class="why-times num">
      Decided {span(acted - from)} after the first sign{ended !== null && ended > acted ? `; done after ${span(ended - from)}` : ''}.
    </p>
  );
}

function span(ms: number): string {
  return ms < 1000 ? `${ms} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : duration(ms);
}

/** How long after the step before: the time from fault to action is the point of the story. */
function since(before: WhyStep | undefined, step: WhyStep): string {
  const from = time(before?.at);
  const to = time(step.at);
  if (from === null || to === null || to <= from) return '';
  return `+${span(to - from)}`;
}

/** A sentence of the server, its `commands` set as code that can be copied. */
export function WithCommands({ text }: { text: string }) {
  return (
    <>
      {text.split('`').map((part, i) =>
        i % 2 === 0 ? (
          <Text key={i} value={part} />
        ) : (
          <span key={i} class="inline-command">
            <code>
              <Text value={part} max={200} brief />
            </code>
            {part.startsWith('argosy ') && <Copy text={part} label={`Copy: ${part}`} />}
          </span>
        ),
      )}
    </>
  );
}
