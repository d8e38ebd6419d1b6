import { expect, it } from 'vitest';
import { toYaml } from './yaml';

it('prints what the CLI prints', () => {
  const value = {
    id: 'gpu-17',
    labels: { team: 'ml', 'a/b': 'true', number: '42' },
    gpus: [{ index: 0, uuid: 'GPU-1' }, { index: 1 }],
    tags: ['a', 'b'],
    none: {},
    empty: [],
    on: true,
    text: 'a: b',
    lines: 'one\ntwo\n',
    missing: undefined,
    nothing: null,
  };
  expect(toYaml(value)).toBe(`id: gpu-17
labels:
  team: ml
  a/b: "true"
  number: "42"
gpus:
- index: 0
  uuid: GPU-1
- index: 1
tags:
- a
- b
none: {}
empty: []
"on": true
text: "a: b"
lines: |
  one
  two
nothing: null
`);
});

it.each(['', ' x', 'x ', '- a', '#c', 'a #b', '1.5', '2026-01-01', 'null', '{', 'a\u202eb', '\x1b[0m', '*a', '&a', '!t', '@x'])(
  'quotes %j',
  (text) => {
    expect(toYaml({ a: text })).toBe(`a: ${JSON.stringify(text)}\n`);
  },
);

it('lists in lists keep their places', () => {
  expect(toYaml([[1, 2], [{ a: [3] }]])).toBe('- - 1\n  - 2\n- - a:\n    - 3\n');
});
