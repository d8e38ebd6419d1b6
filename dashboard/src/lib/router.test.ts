import { expect, it } from 'vitest';
import { href, match, segment } from './router';

it.each([
  ['/', '/', {}],
  ['/nodes', '/nodes', {}],
  ['/nodes', '/node', null],
  ['/nodes/:id', '/nodes/gpu-17', { id: 'gpu-17' }],
  ['/nodes/:id', '/nodes/a%2Fb', { id: 'a/b' }],
  ['/nodes/:id', '/nodes/%', null],
  ['/nodes/:id', '/nodes/', null],
  ['/nodes/:id', '/nodes/a/b', null],
])('%s against %s', (pattern, path, params) => {
  expect(match(pattern, path)).toEqual(params);
});

it('addresses carry any name and leave out what is empty', () => {
  expect(href(`/nodes/${segment('a/b c')}`, { tab: 'why', q: '', n: null })).toBe('/ui/nodes/a%2Fb%20c?tab=why');
});
