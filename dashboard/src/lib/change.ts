/** What changed between two documents: as a merge patch, as lines, and whether two changes are in each other's way. */

type Json = unknown;

function isMap(value: Json): value is Record<string, Json> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

export function same(a: Json, b: Json): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, i) => same(one, b[i]));
  if (!isMap(a) || !isMap(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]));
}

/** The RFC 7386 patch that makes `to` of `from`; empty where they are the same. */
export function mergePatch(from: Json, to: Json): Record<string, Json> {
  const patch: Record<string, Json> = {};
  const before = isMap(from) ? from : {};
  const after = isMap(to) ? to : {};
  for (const key of Object.keys(before)) if (!Object.hasOwn(after, key)) put(patch, key, null);
  for (const [key, value] of Object.entries(after)) {
    if (Object.hasOwn(before, key) && same(before[key], value)) continue;
    const old = before[key];
    put(patch, key, isMap(value) && isMap(old) ? mergePatch(old, value) : value);
  }
  return patch;
}

export function applyPatch(to: Json, patch: Json): Json {
  if (!isMap(patch)) return patch;
  const result: Record<string, Json> = {};
  for (const [key, value] of Object.entries(isMap(to) ? to : {})) put(result, key, value);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else put(result, key, applyPatch(result[key], value));
  }
  return result;
}

/** Paths that both changed, and not to the same: what a rebase must not decide silently. */
export function clashes(base: Json, mine: Json, theirs: Json, at = ''): string[] {
  if (same(mine, theirs) || same(base, mine) || same(base, theirs)) return [];
  if (!isMap(mine) || !isMap(theirs)) return [at || 'everything'];
  const before = isMap(base) ? base : {};
  const keys = new Set([...Object.keys(before), ...Object.keys(mine), ...Object.keys(theirs)]);
  return [...keys].flatMap((key) => clashes(before[key], mine[key], theirs[key], at ? `${at}.${key}` : key));
}

/** Every leaf that a patch sets or removes, by its path, for the equivalent command. */
export function leaves(patch: Json, at = ''): { path: string; value: Json }[] {
  if (!isMap(patch) || Object.keys(patch).length === 0) return at ? [{ path: at, value: patch }] : [];
  return Object.entries(patch).flatMap(([key, value]) => leaves(value, at ? `${at}.${key}` : key));
}

function put(map: Record<string, Json>, key: string, value: Json): void {
  Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
}

export interface DiffLine {
  kind: 'same' | 'added' | 'removed' | 'gap';
  text: string;
}

/** Beyond this the table of the longest common part would be too large; such texts are shown as replaced. */
const CELLS_MAX = 4_000_000;

/** Line by line. Unchanged lines further than `context` from a change are folded into a gap. */
export function diffLines(before: string, after: string, context = 3): DiffLine[] {
  const a = lines(before);
  const b = lines(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const all: DiffLine[] = [
    ...a.slice(0, head).map((text): DiffLine => ({ kind: 'same', text })),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...a.slice(a.length - tail).map((text): DiffLine => ({ kind: 'same', text })),
  ];
  return fold(all, context);
}

export function changedLines(diff: readonly DiffLine[]): { added: number; removed: number } {
  let added = 0;
  let removed = 0;
  for (const line of diff) {
    if (line.kind === 'added') added += 1;
    if (line.kind === 'removed') removed += 1;
  }
  return { added, removed };
}

function lines(text: string): string[] {
  const all = text.split('\n');
  if (all.at(-1) === '') all.pop();
  return all;
}

function middle(a: string[], b: string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: 'removed', text });
  const added = (text: string): DiffLine => ({ kind: 'added', text });
  if (a.length * b.length > CELLS_MAX) return [...a.map(removed), ...b.map(added)];
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      table[i * width + j] =
        a[i] === b[j]
          ? (table[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(table[(i + 1) * width + j] ?? 0, table[i * width + j + 1] ?? 0);
  const out: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    const left = a[i];
    const right = b[j];
    if (left !== undefined && left === right) {
      out.push({ kind: 'same', text: left });
      i += 1;
      j += 1;
    } else if (left !== undefined && (right === undefined || (table[(i + 1) * width + j] ?? 0) >= (table[i * width + j + 1] ?? 0))) {
      out.push(removed(left));
      i += 1;
    } else {
      out.push(added(right ?? ''));
      j += 1;
    }
  }
  return out;
}

function fold(all: DiffLine[], context: number): DiffLine[] {
  const near = new Uint8Array(all.length);
  all.forEach((line, i) => {
    if (line.kind === 'same') return;
    for (let k = Math.max(0, i - context); k <= Math.min(all.length - 1, i + context); k += 1) near[k] = 1;
  });
  const out: DiffLine[] = [];
  let hidden = 0;
  const close = () => {
    if (hidden > 0) out.push({ kind: 'gap', text: `${hidden} unchanged line${hidden === 1 ? '' : 's'}` });
    hidden = 0;
  };
  all.forEach((line, i) => {
    if (near[i]) {
      close();
      out.push(line);
    } else hidden += 1;
  });
  close();
  return out;
}
