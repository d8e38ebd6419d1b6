import { expect, it } from 'vitest';
import { text, toSearch } from './search';

it.each([
  ['', ''],
  ["pool = 'h100'", "pool = 'h100'"],
  ['not xid = 79', 'not xid = 79'],
  ["id like 'a%'", "id like 'a%'"],
  ['gpu-17', "(id ilike '%gpu-17%' or pool ilike '%gpu-17%')"],
  ["o'b", "(id ilike '%o\\'b%' or pool ilike '%o\\'b%')"],
  ['a  b', "(id ilike '%a%' or pool ilike '%a%') and (id ilike '%b%' or pool ilike '%b%')"],
  ['inside', "(id ilike '%inside%' or pool ilike '%inside%')"],
])('%j is sent as %j', (typed, sent) => {
  expect(toSearch(typed, ['id', 'pool'])).toBe(sent);
});

it('quotes cannot be escaped from', () => {
  expect(text("a' or '1'='1\\")).toBe("'a\\' or \\'1\\'=\\'1\\\\'");
});
