/** Every state's word, tone and glyph. A tone is a colour of tokens.css; a glyph tells it apart without colour. */
import type { CommandState, HealthStatus, InstanceState, Liveness, NodeStatus, Severity } from './types';

export type Tone = 'ok' | 'idle' | 'warn' | 'bad' | 'move' | 'held' | 'gone' | 'unknown';

export type Glyph = 'dot' | 'ring' | 'triangle' | 'cross' | 'half' | 'bar' | 'dash' | 'query' | 'check' | 'clock';

export interface StateLook {
  word: string;
  tone: Tone;
  glyph: Glyph;
  /** One sentence for the hover card and the legend. */
  means: string;
}

const look = (word: string, tone: Tone, glyph: Glyph, means: string): StateLook => ({ word, tone, glyph, means });

export const NODE_STATUS: Record<NodeStatus, StateLook> = {
  ACTIVE: look('Active', 'ok', 'dot', 'In service.'),
  UNHEALTHY: look('Unhealthy', 'bad', 'cross', 'Sick or silent, and still in service.'),
  CORDONED: look('Cordoned', 'held', 'bar', 'Takes no new work; what runs goes on.'),
  DRAINING: look('Draining', 'move', 'half', 'Its work is ending or moving away.'),
  TERMINATED: look('Terminated', 'gone', 'dash', 'Gone for good.'),
  UNKNOWN: look('Unknown', 'unknown', 'query', 'It has not said enough yet.'),
};

export const HEALTH: Record<HealthStatus, StateLook> = {
  HEALTHY: look('Healthy', 'ok', 'check', 'Nothing speaks against it.'),
  DEGRADED: look('Degraded', 'warn', 'triangle', 'Something is wrong that does not stop work.'),
  UNHEALTHY: look('Unhealthy', 'bad', 'cross', 'A rule says that it must not be used.'),
  UNKNOWN: look('Unknown', 'unknown', 'query', 'It has not reported, or a rule failed.'),
};

export const LIVENESS: Record<Liveness, StateLook> = {
  Fresh: look('Fresh', 'ok', 'dot', 'Heard within its interval.'),
  Suspect: look('Suspect', 'warn', 'clock', 'Two heartbeats are missing.'),
  Unreachable: look('Unreachable', 'gone', 'dash', 'Not heard for longer than allowed.'),
};

export const SEVERITY: Record<Severity, StateLook> = {
  healthy: look('Healthy', 'ok', 'check', 'Of no consequence.'),
  degraded: look('Degraded', 'warn', 'triangle', 'To be watched.'),
  unhealthy: look('Unhealthy', 'bad', 'cross', 'Not to be used.'),
};

export const COMMAND: Record<CommandState, StateLook> = {
  pending: look('Pending', 'idle', 'clock', 'The node has not fetched it yet.'),
  acknowledged: look('Running', 'move', 'half', 'The node has it.'),
  completed: look('Completed', 'ok', 'check', 'Done.'),
  failed: look('Failed', 'bad', 'cross', 'The node could not do it.'),
  expired: look('Expired', 'warn', 'triangle', 'The node never fetched it.'),
  cancelled: look('Cancelled', 'gone', 'dash', 'Taken back.'),
};

export const INSTANCE: Record<InstanceState, StateLook> = {
  Provisioning: look('Provisioning', 'move', 'half', 'Ordered; the provider makes it.'),
  AwaitingNode: look('Awaiting node', 'move', 'clock', 'Made; its agent has not registered.'),
  Running: look('Running', 'ok', 'dot', 'Its node has registered.'),
  Terminating: look('Terminating', 'held', 'bar', 'Being returned.'),
  Terminated: look('Terminated', 'gone', 'dash', 'Returned.'),
  Failed: look('Failed', 'bad', 'cross', 'It never became a node.'),
};

/** Phases of clusters and node pools. */
export const PHASE: Record<string, StateLook> = {
  Ready: look('Ready', 'ok', 'check', 'All required adapters are done with this generation.'),
  'Not Ready': look('Not Ready', 'warn', 'triangle', 'Some required adapter is not done with this generation.'),
  Pending: look('Pending', 'idle', 'clock', 'No required adapter has reported yet.'),
  Terminating: look('Terminating', 'held', 'bar', 'Being deleted.'),
};

export const ADAPTER_PHASE: Record<string, StateLook> = {
  Pending: look('Pending', 'idle', 'clock', 'Waiting for others.'),
  Running: look('Running', 'move', 'half', 'At work.'),
  Complete: look('Complete', 'ok', 'check', 'Done with this generation.'),
  Failed: look('Failed', 'bad', 'cross', 'It could not do its part.'),
};

/** Conditions: True, False, Unknown. Positive ones are good when true. */
export const TRI: Record<string, StateLook> = {
  True: look('True', 'ok', 'check', 'It holds.'),
  False: look('False', 'bad', 'cross', 'It does not hold.'),
  Unknown: look('Unknown', 'unknown', 'query', 'Nobody can say.'),
};

/** The look of a word nobody told us about: shown as it is. */
export function lookOf(table: Record<string, StateLook>, word: string | undefined): StateLook {
  const key = word ?? '';
  return Object.hasOwn(table, key) ? (table[key] as StateLook) : look(key || 'Unknown', 'unknown', 'query', '');
}
