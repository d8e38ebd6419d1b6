/** The public API, and nothing else. Every answer that is no success is an `ApiError` with cause and next step. */
import { authorization, signInWanted } from './session';
import { heardFrom, isProxys, unheard } from './connection';
import type { BudgetImpact } from './types';

export const FLEET = '/api/argosy/v1';
export const BASE_API = '/api/hyperfleet/v1';

/** Longer than any answer takes; a request that hangs must not leave a page waiting for ever. */
const TIMEOUT_MS = 20_000;

export interface FieldError {
  field: string;
  message: string;
  constraint?: string;
}

/** What the server says in `application/problem+json`. */
export interface Problem {
  title: string;
  status: number;
  detail: string;
  code?: string;
  hint?: string;
  trace_id?: string;
  errors?: FieldError[];
  current_revision?: number;
  /** The disruption budgets that the request exceeds. */
  budgets?: BudgetImpact[];
}

export class ApiError extends Error {
  readonly problem: Problem;
  /** How long the server asks us to wait, in milliseconds. */
  readonly retryAfter: number | null;

  constructor(problem: Problem, retryAfter: number | null = null) {
    super(problem.detail || problem.title);
    this.name = 'ApiError';
    this.problem = problem;
    this.retryAfter = retryAfter;
  }

  get status(): number {
    return this.problem.status;
  }
}

export type Query = Record<string, string | number | boolean | null | undefined>;

export interface Options {
  query?: Query;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** The path with its query, as it is also shown in the equivalent `curl`. */
export function address(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '') search.set(key, String(value));
  }
  const text = search.toString();
  return text ? `${path}?${text}` : path;
}

export async function request<T>(method: string, path: string, options: Options = {}): Promise<T> {
  const response = await send(method, path, options);
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

/** The answer itself, for those that need its headers (`ETag`) or its stream. Throws what is no success. */
export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: 'application/json', ...authorization(), ...options.headers };
  if (options.body !== undefined) headers['Content-Type'] ??= 'application/json';
  const limits = [AbortSignal.timeout(TIMEOUT_MS), ...(options.signal ? [options.signal] : [])];
  let response: Response;
  try {
    response = await fetch(address(path, options.query), {
      method,
      headers,
      signal: AbortSignal.any(limits),
      cache: 'no-store',
      credentials: 'same-origin',
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    });
  } catch (cause) {
    if (options.signal?.aborted) throw cause;
    unheard();
    throw new ApiError(unreachable());
  }
  heardFrom(response);
  if (!response.ok) throw await failure(response);
  return response;
}

export async function failure(response: Response): Promise<ApiError> {
  if (isProxys(response)) return new ApiError(unreachable());
  let problem: Problem;
  try {
    const body = (await response.json()) as Partial<Problem>;
    problem = {
      title: body.title ?? response.statusText,
      detail: body.detail ?? '',
      status: response.status,
      ...pick(body),
    };
  } catch {
    problem = {
      title: response.statusText || `Status ${response.status}`,
      detail: `The server answered ${response.status} without saying why.`,
      status: response.status,
      hint: 'Something between here and the server may have answered for it, such as a proxy.',
    };
  }
  problem.trace_id ??= response.headers.get('X-Request-ID') ?? undefined;
  if (response.status === 401) signInWanted.value = problem.detail;
  const wait = Number(response.headers.get('Retry-After'));
  return new ApiError(problem, Number.isFinite(wait) && wait > 0 ? wait * 1000 : null);
}

function pick(body: Partial<Problem>): Partial<Problem> {
  const { code, hint, trace_id, errors, current_revision, budgets } = body;
  return { code, hint, trace_id, errors, current_revision, budgets };
}

function unreachable(): Problem {
  return {
    title: 'Server out of reach',
    status: 0,
    detail: 'No answer came back. The server may be restarting, or the network is cut.',
    hint: 'Nothing needs to be done here: the page tries again by itself. `argosy doctor` checks the way to the server.',
  };
}

export const get = <T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> =>
  request<T>('GET', path, { query, signal });

/** A request that writes. The key makes a repeat after a lost answer safe. */
export const post = <T>(path: string, body: unknown, options: Options = {}): Promise<T> =>
  request<T>('POST', path, { ...options, body });

export const put = <T>(path: string, body: unknown, options: Options = {}): Promise<T> =>
  request<T>('PUT', path, { ...options, body });

export const patch = <T>(path: string, body: unknown, options: Options = {}): Promise<T> =>
  request<T>('PATCH', path, { ...options, body });

export const del = <T = void>(path: string, options: Options = {}): Promise<T> => request<T>('DELETE', path, options);

/** For `Idempotency-Key`: one per press of a button. */
export function idempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Whatever was thrown, as a problem that can be shown. */
export function asProblem(thrown: unknown): Problem {
  if (thrown instanceof ApiError) return thrown.problem;
  const detail = thrown instanceof Error ? thrown.message : String(thrown);
  return {
    title: 'The dashboard made a mistake',
    status: 0,
    detail,
    hint: 'Reload the page. If it happens again, please report it with this text.',
  };
}
