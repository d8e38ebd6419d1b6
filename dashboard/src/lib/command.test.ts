import { expect, it } from 'vitest';
import { curl, quote, shell } from './command';

it.each([
  ['gpu-17', 'gpu-17'],
  ['a b', "'a b'"],
  ["it's", `'it'\\''s'`],
  ['$(reboot)', "'$(reboot)'"],
  ['a\x1b[2Jb', "$'a\\x1b[2Jb'"],
  ['a\u202egnp.exe', "$'a\\u202egnp.exe'"],
  ["it's\u200f \\n", "$'it\\'s\\u200f \\\\n'"],
  ['\u{e0041}', "$'\\U000e0041'"],
  ['übung\nzwei', "'übung\nzwei'"],
  ['', "''"],
])('quotes %j', (word, quoted) => {
  expect(quote(word)).toBe(quoted);
});

it('leaves out what is not there', () => {
  expect(shell('argosy', 'node', 'drain', 'n1', false, null, '--reason', 'too hot')).toBe(
    "argosy node drain n1 --reason 'too hot'",
  );
});

it('a body with marks that are not seen is sent as escapes', () => {
  const line = curl({ method: 'PUT', path: '/p', body: { reason: 'a\u202eb ü' } }, 'http://h', false);
  expect(line).toContain(`-d '{"reason":"a\\u202eb ü"}'`);
});

it('a curl line has the method, the body and no token', () => {
  expect(curl({ path: '/api/x', query: { search: "a = 'b'" } }, 'http://h', false)).toBe(
    'curl -sS http://h/api/x?search=a+%3D+%27b%27'.replace('http://h/api/x?search=a+%3D+%27b%27', "'http://h/api/x?search=a+%3D+%27b%27'"),
  );
  expect(curl({ method: 'PUT', path: '/p', body: { a: 1 } }, 'http://h', true)).toBe(
    `curl -sS -X PUT -H "Authorization: Bearer $ARGOSY_TOKEN" -H 'Content-Type: application/json' -d '{"a":1}' http://h/p`,
  );
});
