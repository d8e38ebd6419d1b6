/** The document that `argosy sim run NAME --json FILE` writes, read with suspicion: it is a file that somebody chose. */

export interface Violation {
  invariant: string;
  at: number;
  message: string;
  seed?: number;
}

export interface Checked {
  expected: string;
  found: string;
  holds: boolean;
}

export interface Fault {
  at: number;
  target: string;
  cause: string;
  kind: string;
  interrupts: boolean;
  detected_after: number | null;
  cordoned_after: number | null;
  repaired_after: number | null;
}

export interface Series {
  step_seconds: number;
  wanted: number[];
  present: number[];
  in_service: number[];
  disrupted: number[];
  budget: number[];
  cost_per_hour: number[];
  goodput: number[];
}

export interface Run {
  scenario: string;
  seed: number;
  digest: string;
  simulated_seconds: number;
  events: number;
  nodes: number;
  gpus: number;
  passed: boolean;
  replay: string;
  violations: Violation[];
  assertions: Checked[];
  series: Series;
  faults: Fault[];
  actions: [string, number][];
  rules: { rule: string; hits: number; nodes: number; replaced: number }[];
  work: { jobs: number; interruptions: number; possible: number; useful: number; redone: number; waited: number; overhead: number; by_cause: [string, number][] } | null;
  money: { total: number; wasted: number; bought: number; returned: number };
}

export type Report = { kind: 'run'; run: Run } | { kind: 'runs'; runs: Run[]; scenario: string; violations: Violation[] };

/** A page can show this many points well; a file with more is thinned. */
const POINTS_MAX = 20_000;
export const FILE_BYTES_MAX = 256 * 1024 * 1024;

export class NotAReport extends Error {}

type Map_ = Record<string, unknown>;
const isMap = (value: unknown): value is Map_ => value !== null && typeof value === 'object' && !Array.isArray(value);
const num = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0);
const numOr = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null);
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const maps = (value: unknown): Map_[] => (Array.isArray(value) ? value.filter(isMap) : []);
const nums = (value: unknown): number[] => (Array.isArray(value) ? value.map(num) : []);
const counts = (value: unknown): [string, number][] => (isMap(value) ? Object.entries(value).map(([key, one]): [string, number] => [key, num(one)]).sort((a, b) => b[1] - a[1]) : []);

export function readReport(json: string): Report {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new NotAReport('This file is not JSON.');
  }
  if (!isMap(value)) throw new NotAReport('This JSON is not a report.');
  if (value['kind'] === 'SimulationComparison') throw new NotAReport('This is a comparison of two configurations; its page is what `argosy sim compare --html FILE` writes. Open the report of one run here.');
  if (Array.isArray(value['runs'])) {
    const runs = maps(value['runs']).map(runOf);
    return { kind: 'runs', runs, scenario: text(value['scenario']) || (runs[0]?.scenario ?? ''), violations: violationsOf(value['violations']) };
  }
  if (typeof value['scenario'] !== 'string' || !isMap(value['series'])) throw new NotAReport('This JSON is not the report of a simulation: it has no scenario and no series.');
  return { kind: 'run', run: runOf(value) };
}

function violationsOf(value: unknown): Violation[] {
  return maps(value).map((one) => ({ invariant: text(one['invariant']), at: num(one['at']), message: text(one['message']), ...(typeof one['seed'] === 'number' ? { seed: one['seed'] } : {}) }));
}

function runOf(value: Map_): Run {
  const series = isMap(value['series']) ? value['series'] : {};
  const money = isMap(value['money']) ? value['money'] : {};
  const work = isMap(value['work']) ? value['work'] : null;
  const violations = violationsOf(value['violations']);
  const assertions = maps(value['assertions']).map((one) => ({ expected: text(one['expected']), found: text(one['found']), holds: one['holds'] === true }));
  const scenario = text(value['scenario']);
  return {
    scenario,
    seed: num(value['seed']),
    digest: text(value['digest']),
    simulated_seconds: num(value['simulated_seconds']),
    events: num(value['events']),
    nodes: num(value['nodes']),
    gpus: num(value['gpus']),
    passed: typeof value['passed'] === 'boolean' ? value['passed'] : violations.length === 0 && assertions.every((one) => one.holds),
    replay: text(value['replay']) || `argosy sim run ${scenario} --seed ${num(value['seed'])}`,
    violations,
    assertions,
    series: thinned({
      step_seconds: num(series['step_seconds']) || 1,
      wanted: nums(series['wanted']),
      present: nums(series['present']),
      in_service: nums(series['in_service']),
      disrupted: nums(series['disrupted']),
      budget: nums(series['budget']),
      cost_per_hour: nums(series['cost_per_hour']),
      goodput: nums(series['goodput']),
    }),
    faults: maps(value['faults']).map((one) => ({
      at: num(one['at']),
      target: text(one['target']),
      cause: text(one['cause']),
      kind: text(one['kind']),
      interrupts: one['interrupts'] === true,
      detected_after: numOr(one['detected_after']),
      cordoned_after: numOr(one['cordoned_after']),
      repaired_after: numOr(one['repaired_after']),
    })),
    actions: counts(value['actions']),
    rules: isMap(value['rules'])
      ? Object.entries(value['rules']).map(([rule, one]) => {
          const hits = isMap(one) ? one : {};
          return { rule, hits: num(hits['hits']), nodes: num(hits['nodes']), replaced: num(hits['replaced']) };
        })
      : [],
    work: work
      ? { jobs: num(work['jobs']), interruptions: num(work['interruptions']), possible: num(work['possible']), useful: num(work['useful']), redone: num(work['redone']), waited: num(work['waited']), overhead: num(work['overhead']), by_cause: counts(work['by_cause']) }
      : null,
    money: { total: num(money['total']), wasted: num(money['wasted']), bought: num(money['bought']), returned: num(money['returned']) },
  };
}

/** Every n-th point, where there are too many; of nodes out of service the most in each stretch, so that no peak is lost. */
function thinned(series: Series): Series {
  const length = Math.max(series.wanted.length, series.present.length, series.in_service.length);
  const every = Math.ceil(length / POINTS_MAX);
  if (every <= 1) return series;
  const nth = (list: number[]) => list.filter((_, i) => i % every === 0);
  const extreme = (list: number[], pick: (...values: number[]) => number) => nth(list).map((_, i) => pick(...list.slice(i * every, (i + 1) * every)));
  return {
    step_seconds: series.step_seconds * every,
    wanted: nth(series.wanted),
    present: nth(series.present),
    in_service: extreme(series.in_service, Math.min),
    disrupted: extreme(series.disrupted, Math.max),
    budget: nth(series.budget),
    cost_per_hour: nth(series.cost_per_hour),
    goodput: nth(series.goodput),
  };
}

/** The places of a series on its axis, in seconds since the beginning. */
export function seriesAt(series: Series): number[] {
  const length = Math.max(series.wanted.length, series.present.length, series.in_service.length, series.goodput.length, series.cost_per_hour.length);
  return Array.from({ length }, (_, i) => i * series.step_seconds);
}

/** As long as its axis; what is missing is a gap. */
export function padded(list: readonly number[], length: number): (number | null)[] {
  return Array.from({ length }, (_, i) => list[i] ?? null);
}

export interface CauseSum {
  cause: string;
  count: number;
  interrupting: number;
  detected: number | null;
  repaired: number | null;
  unrepaired: number;
}

/** Faults by their cause, the most frequent first; times are medians, in seconds. */
export function byCause(faults: readonly Fault[]): CauseSum[] {
  const found = new Map<string, Fault[]>();
  for (const fault of faults) {
    const list = found.get(fault.cause);
    if (list) list.push(fault);
    else found.set(fault.cause, [fault]);
  }
  const times = (list: Fault[], of: (fault: Fault) => number | null) => median(list.map(of).filter((one): one is number => one !== null));
  return [...found]
    .map(([cause, list]) => ({
      cause,
      count: list.length,
      interrupting: list.filter((one) => one.interrupts).length,
      detected: times(list, (one) => one.detected_after),
      repaired: times(list, (one) => one.repaired_after),
      unrepaired: list.filter((one) => one.repaired_after === null).length,
    }))
    .sort((a, b) => b.count - a.count || a.cause.localeCompare(b.cause));
}

export function median(list: readonly number[]): number | null {
  if (list.length === 0) return null;
  const sorted = [...list].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[middle] ?? null) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

/** The part of the wanted GPUs that was in service, over the whole run; null where nothing was wanted. */
export function availability(series: Series): number | null {
  let wanted = 0;
  let served = 0;
  series.wanted.forEach((want, i) => {
    wanted += want;
    served += Math.min(want, series.in_service[i] ?? 0);
  });
  return wanted > 0 ? served / wanted : null;
}
