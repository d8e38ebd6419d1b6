/** Words of the simulation pages. */
import { duration } from '../../lib/format';
import type { StateLook } from '../../lib/states';

export const VERDICT: Record<'passed' | 'failed', StateLook> = {
  passed: { word: 'Passed', tone: 'ok', glyph: 'check', means: 'Nothing was that must never be, and everything was as expected.' },
  failed: { word: 'Failed', tone: 'bad', glyph: 'cross', means: 'Something was that must never be, or something was not as expected.' },
};

/** A span of simulated seconds. */
export function span(seconds: number | null): string {
  if (seconds === null) return '–';
  if (seconds === 0) return '0';
  return seconds < 10 ? `${seconds.toFixed(1)}s` : duration(seconds * 1000);
}
