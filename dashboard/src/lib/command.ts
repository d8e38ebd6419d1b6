/** The same thing on the command line: what the CLI and curl would be, quoted so that pasting is safe. */
import { address, type Query } from './api';
import { isHidden } from './text';

/**
 * A word for a shell. What would not be seen, or would be seen as something else, stands as an escape in `$'…'`: neither
 * the page nor, by way of the clipboard, a terminal gets it raw, and the command means the same.
 */
export function quote(word: string): string {
  if (/^[A-Za-z0-9_./:=@%+,-]+$/.test(word)) return word;
  if (![...word].some(unseen)) return `'${word.replaceAll("'", `'\\''`)}'`;
  const inside = [...word].map((char) => (unseen(char) ? escape(char) : char === "'" || char === '\\' ? `\\${char}` : char));
  return `$'${inside.join('')}'`;
}

function unseen(char: string): boolean {
  const code = char.codePointAt(0) ?? 0;
  return (code < 0x20 && char !== '\n' && char !== '\t') || code === 0x7f || isHidden(code);
}

/** As bash and zsh read it. */
function escape(char: string): string {
  const code = (char.codePointAt(0) ?? 0).toString(16);
  if (code.length <= 2) return `\\x${code.padStart(2, '0')}`;
  return code.length <= 4 ? `\\u${code.padStart(4, '0')}` : `\\U${code.padStart(8, '0')}`;
}

/** JSON in ASCII where a character would not be seen: the same value to whoever reads it. */
function seenJson(value: unknown): string {
  return JSON.stringify(value).replace(/[^\x20-\x7e]/gu, (char) => {
    if (!unseen(char)) return char;
    return char.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
  });
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
  if (call.body !== undefined) line += ` -H 'Content-Type: application/json' -d ${quote(seenJson(call.body))}`;
  return `${line} ${quote(origin + address(call.path, call.query))}`;
}
