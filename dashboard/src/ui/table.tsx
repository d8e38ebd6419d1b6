/**
 * A table that stays fast with many thousand rows: only those in sight are in the page. Sorted by its heads, walked
 * with the arrow keys, its order kept in the address.
 */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { go, query, setQuery } from '../lib/router';
import { narrow } from '../lib/screen';
import { Icon } from './glyph';

export interface Column<T> {
  key: string;
  head: string;
  cell: (row: T) => ComponentChildren;
  /** What it is sorted by; without it the head is no button. */
  value?: (row: T) => string | number | null | undefined;
  /** Numbers stand right. */
  end?: boolean;
  /** Left out where the screen is narrower. */
  hide?: 'phone' | 'tablet';
  /** A width such as `12ch` or `20%`. */
  width?: string;
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
  rowKey: (row: T) => string;
  /** Where a row leads. */
  link?: (row: T) => string;
  /** `name`, or `-age` for the other way round; the address has the last word. */
  order?: string;
  /** The address' parameter, where a page has two tables. */
  parameter?: string;
  empty?: ComponentChildren;
  /** Rows of different heights, such as those with sentences: all of them are in the page, so keep them few. */
  loose?: boolean;
  /** Of two lines each on a phone, where one has no room for a sentence. */
  tall?: boolean;
}

/** In step with `--row`, and with `--row-tall`. */
const ROW_PX = 34;
const TALL_ROW_PX = 52;
/** Drawn beyond what is in sight, so that quick scrolling shows no gap. */
const SPARE_ROWS = 12;
/** Fewer than this are simply all drawn. */
const VIRTUAL_ABOVE = 120;

export function Table<T>(props: Props<T>) {
  const { columns, rows, rowKey, link, parameter = 'sort' } = props;
  const order = query.value.get(parameter) ?? props.order ?? '';
  const key = order.replace(/^-/, '');
  const down = order.startsWith('-');
  const column = columns.find((one) => one.key === key);
  const sorted = useMemo(() => sort(rows, column?.value, down), [rows, column?.value, down]);

  const box = useRef<HTMLDivElement>(null);
  const active = useSignal(0);
  const virtual = !props.loose && sorted.length > VIRTUAL_ABOVE;
  const rowPx = props.tall && narrow.value ? TALL_ROW_PX : ROW_PX;
  const range = useRange(box, sorted.length, virtual, rowPx);
  const [from, to] = virtual ? range : [0, sorted.length];

  const sortBy = (one: Column<T>) => {
    const next = key === one.key ? (down ? one.key : `-${one.key}`) : one.key;
    setQuery({ [parameter]: next === props.order ? null : next });
  };

  const move = (event: KeyboardEvent) => {
    const last = sorted.length - 1;
    const page = Math.max(1, Math.floor(innerHeight / rowPx) - 4);
    const at = active.peek();
    const steps: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      j: at + 1,
      k: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: last,
    };
    const step = steps[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof HTMLElement && /^(?:INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    active.value = Math.min(last, Math.max(0, step));
    reveal(box.current, active.value, virtual, rowPx);
    requestAnimationFrame(() =>
      box.current?.querySelector<HTMLElement>(`[data-row="${active.value}"] a, [data-row="${active.value}"][tabindex]`)?.focus(),
    );
  };

  if (sorted.length === 0 && props.empty) return <>{props.empty}</>;
  return (
    <div class="table-box" ref={box} onKeyDown={move}>
      <table class={`table${props.loose ? ' table-loose' : ''}${props.tall ? ' table-tall' : ''}`} aria-label={props.label} aria-rowcount={sorted.length + 1}>
        <thead>
          <tr>
            {columns.map((one) => (
              <th
                key={one.key}
                scope="col"
                class={cellClass(one)}
                {...(one.width ? { style: { width: one.width } } : {})}
                {...(key === one.key ? { 'aria-sort': down ? 'descending' : 'ascending' } : {})}
              >
                {one.value ? (
                  <button type="button" onClick={() => sortBy(one)}>
                    {one.head}
                    {key === one.key && <Icon name={down ? 'down' : 'up'} />}
                  </button>
                ) : (
                  one.head
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {from > 0 && <tr class="table-gap" aria-hidden="true" style={{ height: `${from * rowPx}px` }} />}
          {sorted.slice(from, to).map((row, i) => {
            const index = from + i;
            return (
              <tr
                key={rowKey(row)}
                data-row={index}
                aria-rowindex={index + 2}
                class={link ? 'table-link' : ''}
                onFocusIn={() => (active.value = index)}
                onClick={(event) => {
                  const target = event.target as HTMLElement;
                  if (!link || event.defaultPrevented || target.closest('a, button, input, summary')) return;
                  if (getSelection()?.toString()) return;
                  const to = link(row);
                  if (event.ctrlKey || event.metaKey) open(to, '_blank', 'noopener');
                  else go(to);
                }}
              >
                {columns.map((one, at) => (
                  <td key={one.key} class={cellClass(one)}>
                    {at === 0 && link ? (
                      <a href={link(row)} tabIndex={index === active.value || (at === 0 && index === from && active.value < from) ? 0 : -1}>
                        {one.cell(row)}
                      </a>
                    ) : (
                      one.cell(row)
                    )}
                  </td>
                ))}
              </tr>
            );
          })}
          {to < sorted.length && (
            <tr class="table-gap" aria-hidden="true" style={{ height: `${(sorted.length - to) * rowPx}px` }} />
          )}
        </tbody>
      </table>
    </div>
  );
}

function cellClass<T>(column: Column<T>): string {
  return `${column.end ? 'end' : ''}${column.hide ? ` hide-${column.hide}` : ''}`;
}

const COLLATOR = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

/** Stable, numbers as numbers, what is missing last. */
export function sort<T>(rows: readonly T[], value: Column<T>['value'], down: boolean): readonly T[] {
  if (!value) return rows;
  const keyed = rows.map((row) => ({ row, key: value(row) }));
  keyed.sort((a, b) => {
    if (a.key === b.key) return 0;
    if (a.key === null || a.key === undefined) return 1;
    if (b.key === null || b.key === undefined) return -1;
    const order =
      typeof a.key === 'number' && typeof b.key === 'number' ? a.key - b.key : COLLATOR.compare(String(a.key), String(b.key));
    return down ? -order : order;
  });
  return keyed.map(({ row }) => row);
}

/** Which rows are in sight of the window. */
function useRange(box: { current: HTMLDivElement | null }, total: number, virtual: boolean, rowPx: number): [number, number] {
  const range = useSignal<[number, number]>([0, 60]);
  const look = () => {
    const rect = box.current?.getBoundingClientRect();
    if (!rect) return;
    const first = Math.max(0, Math.floor(-rect.top / rowPx) - SPARE_ROWS);
    const last = Math.min(total, Math.ceil((innerHeight - rect.top) / rowPx) + SPARE_ROWS);
    const [from, to] = range.peek();
    if (from !== first || to !== last) range.value = [first, Math.max(first, last)];
  };
  useLayoutEffect(() => {
    if (virtual) look();
  }, [total, virtual, rowPx]);
  useEffect(() => {
    if (!virtual) return undefined;
    addEventListener('scroll', look, { passive: true });
    addEventListener('resize', look);
    return () => {
      removeEventListener('scroll', look);
      removeEventListener('resize', look);
    };
  }, [total, virtual, rowPx]);
  const [from, to] = range.value;
  return [Math.min(from, Math.max(0, total - 1)), Math.min(to, total)];
}

/** Scroll so that a row is between head and foot of the window. */
function reveal(box: HTMLDivElement | null, row: number, virtual: boolean, rowPx: number): void {
  if (!box) return;
  if (!virtual) {
    box.querySelector(`[data-row="${row}"]`)?.scrollIntoView({ block: 'nearest' });
    return;
  }
  const top = box.getBoundingClientRect().top + scrollY + (row + 1) * rowPx;
  const margin = rowPx * 4;
  if (top < scrollY + margin) scrollTo(0, top - margin);
  else if (top > scrollY + innerHeight - margin) scrollTo(0, top - innerHeight + margin);
}
