/** What clusters and node pools say about themselves, made ready to show. All of it is pure. */
import { time } from './format';
import type { AdapterPhase, AdapterStatus, Condition, HistoryEntry, Resource, StatusLine, StatusList } from './types';

/** Reasons of an `Available` that is False because the adapter waits, or is still at work; as the server has them. */
const WAITING = ['PreconditionsNotMet', 'PreconditionNotMet', 'NotStarted', 'ResourcesSkipped'];
const AT_WORK = /^(?:JobRunning|JobPending|WorkloadInProgress|PostconditionsNotMet|MinimumReplicasUnavailable)$|(?:InProgress|Running|Progressing)$/;

/** What one report says in a word. */
export function phaseOf(report: Pick<AdapterStatus, 'conditions'>): AdapterPhase {
  const said = (type: string) => report.conditions.find((one) => one.type === type);
  const available = said('Available');
  const applied = said('Applied')?.status ?? 'Unknown';
  if (said('Finalized')?.status === 'True' || available?.status === 'True') return 'Complete';
  if (said('Health')?.status === 'False') return 'Failed';
  if (available?.status !== 'False') return applied === 'True' ? 'Running' : 'Pending';
  const reason = available.reason ?? '';
  if (applied === 'True' && AT_WORK.test(reason)) return 'Running';
  if (applied !== 'True' && WAITING.includes(reason)) return 'Pending';
  return 'Failed';
}

/** The condition that tells what the report is about: what is wrong if something is, else `Available`. */
export function wordOf(report: Pick<AdapterStatus, 'conditions'>): { reason: string; message: string } {
  const health = report.conditions.find((one) => one.type === 'Health' && one.status === 'False');
  const finalized = report.conditions.find((one) => one.type === 'Finalized' && one.status === 'True');
  const one = health ?? finalized ?? report.conditions.find((each) => each.type === 'Available') ?? report.conditions[0];
  return { reason: one?.reason ?? '', message: one?.message ?? '' };
}

export interface Bar {
  key: number;
  phase: AdapterPhase;
  from: number;
  to: number;
  /** Still so: the last report of its adapter. */
  open: boolean;
  generation: number;
  reason: string;
  message: string;
  /** Reports in it; more than one where they would be too narrow to be told apart. */
  reports: number;
  discarded?: string;
}

export interface Lane {
  adapter: string;
  bars: Bar[];
  line?: StatusLine;
}

export interface Lanes {
  from: number;
  to: number;
  lanes: Lane[];
  /** When each generation was first spoken of. */
  generations: { generation: number; at: number }[];
}

/** Narrower than this part of the whole, equal neighbours become one bar. */
const NARROW = 0.012;

/**
 * Adapters over time. Each report begins a bar that lasts until the adapter's next report. The window is that of
 * `generation`, or of everything that is known; it ends now while something is still at work, else soon after the end.
 */
export function lanesOf(history: readonly HistoryEntry[], lines: readonly StatusLine[], now: number, generation: number | null): Lanes {
  const told = history
    .map((entry) => ({ entry, at: time(entry.at) ?? 0 }))
    .filter(({ entry }) => generation === null || entry.generation === generation)
    .sort((a, b) => a.at - b.at || a.entry.sequence - b.entry.sequence);
  const settled = lines.length > 0 && lines.every((line) => line.phase === 'Complete');
  const last = told.at(-1)?.at ?? now;
  const from = told[0]?.at ?? now;
  const to = settled ? Math.min(now, last + Math.max(1_000, (last - from) * 0.12)) : now;
  const span = Math.max(1, to - from);

  const lanes = new Map<string, Lane>(lines.map((line) => [line.adapter_name, { adapter: line.adapter_name, bars: [], line }]));
  for (const { entry, at } of told) {
    const adapter = entry.report.adapter;
    const lane = lanes.get(adapter) ?? { adapter, bars: [] };
    lanes.set(adapter, lane);
    const before = lane.bars.at(-1);
    if (before) {
      before.to = at;
      before.open = false;
    }
    lane.bars.push({
      key: entry.sequence,
      phase: phaseOf(entry.report),
      from: at,
      to,
      open: true,
      generation: entry.generation,
      ...wordOf(entry.report),
      reports: 1,
      ...(entry.discarded ? { discarded: entry.discarded } : {}),
    });
  }
  const generations: Lanes['generations'] = [];
  for (const { entry, at } of told)
    if (!generations.some((one) => one.generation === entry.generation)) generations.push({ generation: entry.generation, at });
  return { from, to, generations, lanes: [...lanes.values()].map((lane) => ({ ...lane, bars: joined(lane.bars, span) })) };
}

function joined(bars: Bar[], span: number): Bar[] {
  const out: Bar[] = [];
  for (const bar of bars) {
    const before = out.at(-1);
    const narrow = before && (before.to - before.from) / span < NARROW && (bar.to - bar.from) / span < NARROW * 4;
    if (before && narrow && before.phase === bar.phase && before.reason === bar.reason && before.generation === bar.generation) {
      out[out.length - 1] = { ...bar, from: before.from, reports: before.reports + bar.reports };
    } else out.push(bar);
  }
  return out;
}

/** Even places on a time axis, at whole seconds, minutes or hours, as milliseconds since `from`. */
export function ticks(from: number, to: number, most = 6): number[] {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 604800, 2592000].map((s) => s * 1000);
  const span = Math.max(1, to - from);
  const step = steps.find((one) => span / one <= most) ?? span;
  const out: number[] = [];
  for (let at = 0; at <= span && out.length <= most; at += step) out.push(at);
  return out;
}

export interface Blocker {
  adapter: string;
  phase: AdapterPhase;
  reason: string;
  message: string;
  since: string;
  /** What the adapter says that people can do. */
  guidance?: string;
  retryAt?: string;
}

/** What keeps a resource from being ready: broken ones first, then those at work, then those that wait. */
export function blockers(statuses: StatusList | null): Blocker[] {
  const order: AdapterPhase[] = ['Failed', 'Running', 'Pending'];
  const reports = new Map((statuses?.items ?? []).map((report) => [report.adapter, report]));
  return (statuses?.statuses ?? [])
    .filter((line) => line.phase !== 'Complete')
    .sort((a, b) => order.indexOf(a.phase) - order.indexOf(b.phase))
    .map((line) => {
      const report = reports.get(line.adapter_name);
      const data = report?.data ?? {};
      const word = (name: string) => (typeof data[name] === 'string' ? { [name]: data[name] } : {});
      const guidance = typeof data['guidance'] === 'string' ? withoutRetry(data['guidance']) : '';
      return {
        adapter: line.adapter_name,
        phase: line.phase,
        reason: report && line.phase !== 'Pending' ? wordOf(report).reason : 'NotStarted',
        message: line.message,
        since: line.last_transition_time,
        ...(guidance ? { guidance } : {}),
        ...word('retryAt'),
      };
    });
}

/** Without the sentence about the next try: pages tell it as an age. */
export function withoutRetry(guidance: string): string {
  return guidance.replace(/\s*The next try is at \S+?Z\.?/, '').trim();
}

export interface Generation {
  generation: number;
  from: string;
  /** When the last adapter was done, if all that spoke were. */
  done?: string;
  adapters: { adapter: string; phase: AdapterPhase; reports: number; message: string }[];
  entries: HistoryEntry[];
}

/** History by generation, the newest first. */
export function generationsOf(history: readonly HistoryEntry[]): Generation[] {
  const found = new Map<number, HistoryEntry[]>();
  for (const entry of history) {
    const list = found.get(entry.generation);
    if (list) list.push(entry);
    else found.set(entry.generation, [entry]);
  }
  return [...found]
    .sort(([a], [b]) => b - a)
    .map(([generation, unordered]) => {
      const entries = [...unordered].sort((a, b) => b.sequence - a.sequence);
      const adapters = new Map<string, Generation['adapters'][number] & { at: string }>();
      for (const entry of [...entries].reverse()) {
        const before = adapters.get(entry.report.adapter);
        const phase = phaseOf(entry.report);
        adapters.set(entry.report.adapter, {
          adapter: entry.report.adapter,
          phase,
          reports: (before?.reports ?? 0) + 1,
          message: wordOf(entry.report).message,
          at: before && before.phase === phase ? before.at : entry.at,
        });
      }
      const all = [...adapters.values()];
      const done = all.every((one) => one.phase === 'Complete') ? all.map((one) => one.at).sort().at(-1) : undefined;
      return { generation, from: entries.at(-1)?.at ?? '', ...(done ? { done } : {}), adapters: all, entries };
    });
}

/** Conditions that are good when they are False. None of the server's own is; adapters may name some so. */
const NEGATIVE = /(?:Pressure|Failed|Error|Degraded|Unavailable)$/;

export function conditionTone(condition: Condition): 'ok' | 'bad' | 'warn' | 'unknown' {
  if (condition.status === 'Unknown') return 'unknown';
  const good = (condition.status === 'True') !== NEGATIVE.test(condition.type);
  return good ? 'ok' : condition.type === 'Healthy' ? 'bad' : 'warn';
}

/** A spec or an adapter's data as rows, with dots for what is deeper. Lists of plain values stay in one row. */
export function flat(value: unknown, at = '', depth = 0): { name: string; value: string }[] {
  if (value === null || value === undefined) return at ? [{ name: at, value: '–' }] : [];
  if (typeof value !== 'object') return [{ name: at || 'value', value: String(value) }];
  const isPlain = (one: unknown) => one === null || typeof one !== 'object';
  if (Array.isArray(value) && value.every(isPlain)) return [{ name: at, value: value.length === 0 ? 'none' : value.join(', ') }];
  if (depth >= 4) return [{ name: at, value: JSON.stringify(value) }];
  return Object.entries(value).flatMap(([key, member]) => flat(member, at ? `${at}.${key}` : key, depth + 1));
}

export function specText(resource: Pick<Resource, 'spec'>, name: string): string {
  const value = resource.spec[name];
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

export function specNumber(resource: Pick<Resource, 'spec'>, name: string): number | null {
  const value = resource.spec[name];
  return typeof value === 'number' ? value : null;
}

export const NAME_MAX = 63;

/** What is wrong with a name, or null. */
export function nameProblem(name: string): string | null {
  if (name === '') return null;
  if (name.length > NAME_MAX) return `At most ${NAME_MAX} characters; this has ${name.length}.`;
  if (/[A-Z]/.test(name)) return 'Lower-case letters only.';
  if (/[^a-z0-9-]/.test(name)) return 'Only lower-case letters, digits and hyphens.';
  if (/^-|-$/.test(name)) return 'It begins and ends with a letter or a digit.';
  return null;
}

/** `team=ml, env=prod` as labels, or what is wrong with it. */
export function readLabels(text: string): { labels: Record<string, string>; problem: string | null } {
  const labels: Record<string, string> = {};
  for (const part of text.split(/[,\s]+/).filter(Boolean)) {
    const found = /^([^=:]+)[=:](.*)$/.exec(part);
    if (!found?.[1]) return { labels, problem: `\`${part.slice(0, 60)}\` is not of the form key=value.` };
    const [, key, value = ''] = found;
    if (key.length > 63 || !/^[a-zA-Z0-9](?:[a-zA-Z0-9._-]*[a-zA-Z0-9])?$/.test(key)) return { labels, problem: `\`${key.slice(0, 60)}\` cannot be the key of a label.` };
    if (value.length > 63 || !/^(?:[a-zA-Z0-9](?:[a-zA-Z0-9._-]*[a-zA-Z0-9])?)?$/.test(value)) return { labels, problem: `\`${value.slice(0, 60)}\` cannot be the value of a label.` };
    Object.defineProperty(labels, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return { labels, problem: null };
}
