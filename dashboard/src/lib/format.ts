/** Numbers and times as people read them. All of it is pure; `now` is passed in. */

const COUNT = new Intl.NumberFormat('en-US');
const MONEY = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' });
const MONEY_ROUND = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD', maximumFractionDigits: 0 });

export function count(value: number): string {
  return COUNT.format(value);
}

/** US dollars; cents only where they matter. */
export function money(value: number): string {
  // `|| 0`: a sum of nothing may be minus zero, which nobody wants to read.
  return Math.abs(value) >= 1000 ? MONEY_ROUND.format(value) : MONEY.format(value || 0);
}

/** What several machines cost an hour: `$20.00`, `at least $20.00` or `unknown` where `unpriced` of them have no known price. */
export function spend(known: number, unpriced: number | undefined): string {
  if (!unpriced) return money(known);
  return known > 0 ? `at least ${money(known)}` : 'unknown';
}

/** `1 node`, `2 nodes`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${value >= 100 || at === 0 ? Math.round(value) : value.toFixed(1)} ${units[at] ?? ''}`;
}

/** With a space that does not break, so that the sign never stands alone on a line. */
export function percent(part: number, whole: number): string {
  if (whole <= 0) return '–';
  const value = (part / whole) * 100;
  // Near the ends a digit more: 99.7 % is not all, and 0.1 % is not nothing.
  if ((value > 0 && value < 10) || (value > 90 && value < 100)) return `${Math.min(99.9, Math.max(0.1, value)).toFixed(1)}\u00a0%`;
  return `${Math.round(value)}\u00a0%`;
}

/** `4s`, `12m`, `3h 20m`, `5d 2h`: two units at most. */
export function duration(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s}s`;
  const m = Math.floor(s / 60);
  if (m < 60) return m < 10 && s % 60 ? `${m}m ${s % 60}s` : `${m}m`;
  const h = Math.floor(m / 60);
  if (h < 48) return h < 10 && m % 60 ? `${h}h ${m % 60}m` : `${h}h`;
  const d = Math.floor(h / 24);
  return d < 10 && h % 24 ? `${d}d ${h % 24}h` : `${d}d`;
}

/** `12m ago`, `in 3h`, `now`. */
export function ago(at: number, now: number): string {
  const past = now - at;
  if (Math.abs(past) < 1500) return 'now';
  return past > 0 ? `${duration(past)} ago` : `in ${duration(-past)}`;
}

const FULL = new Intl.DateTimeFormat('en-GB', {
  year: 'numeric',
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'short',
});
const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const DAY_CLOCK = new Intl.DateTimeFormat('en-GB', {
  day: '2-digit',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
});

export function fullTime(at: number): string {
  return FULL.format(at);
}

/** The time of day; with the day if it is another one than today. */
export function clock(at: number, now: number): string {
  return new Date(at).toDateString() === new Date(now).toDateString() ? CLOCK.format(at) : DAY_CLOCK.format(at);
}

/** The API's time as milliseconds, or null where there is none. */
export function time(text: string | null | undefined): number | null {
  if (!text) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : at;
}
