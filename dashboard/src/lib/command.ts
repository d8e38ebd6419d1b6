/** The same thing on the command line: what the CLI and curl would be, quoted so that pasting is safe. */
import { address, type Query } from './api';

/** A word for a POSIX shell. */
export function quote(word: string): string {
  if (/^[A-Za-z0-9_./:=@%+,-]+$/.test(word)) return word;
  // Control characters must not reach a terminal by way of the clipboard.
  const safe = word.replace(/[\x00-\x08\x0b-\x1f\x7f]/g, '');
  return `'${safe.replaceAll("'", `'\\''`)}'`;
}

export function shell(...words: (string | null | undefined | false)[]): string {
  return words.filter((word): word is string => typeof word === 'string' && word !== '').map(quote).join(' ');
}

export interface Call {
  method?: string;
  path: string;
  query?: Query;
  body?: unknown;
  headers?: Record<string, string>;
}

/** A curl line. The token is never in it: it stands where the shell will put it. */
export function curl(call: Call, origin: string, token: boolean): string {
  const words = ['curl', '-sS'];
  const method = call.method ?? 'GET';
  if (method !== 'GET' && !(method === 'POST' && call.body !== undefined)) words.push('-X', method);
  let line = words.join(' ');
  if (token) line += ` -H "Authorization: Bearer $ARGOSY_TOKEN"`;
  for (const [name, value] of Object.entries(call.headers ?? {})) line += ` -H ${quote(`${name}: ${value}`)}`;
  if (call.body !== undefined) line += ` -H 'Content-Type: application/json' -d ${quote(JSON.stringify(call.body))}`;
  return `${line} ${quote(origin + address(call.path, call.query))}`;
}
