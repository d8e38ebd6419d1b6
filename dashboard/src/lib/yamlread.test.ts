import { describe, expect, it } from 'vitest';
import { toYaml } from './yaml';
import { fromYaml, YamlError } from './yamlread';

describe('YAML that people write', () => {
  const rows: [string, unknown][] = [
    ['', null],
    ['# nothing\n', null],
    ['a: 1\nb: two\n', { a: 1, b: 'two' }],
    ['---\na: 1', { a: 1 }],
    ['spec:\n  nodeCount: 3 # three\n  zones: [a, "b", \'c\']\n', { spec: { nodeCount: 3, zones: ['a', 'b', 'c'] } }],
    ['list:\n- 1\n- 2\nnext: x', { list: [1, 2], next: 'x' }],
    ['list:\n  - name: a\n    is: true\n  - name: b\n', { list: [{ name: 'a', is: true }, { name: 'b' }] }],
    ['- - 1\n  - 2\n- []\n', [[1, 2], []]],
    ['a: yes\nb: no\nc: ~\nd:\ne: 1e3\nf: 0x10\ng: 1.5.2\nh: 08:30', { a: 'yes', b: 'no', c: null, d: null, e: 1000, f: 16, g: '1.5.2', h: '08:30' }],
    ['a: |\n  one\n   two\n\n  three\nb: x', { a: 'one\n two\n\nthree\n', b: 'x' }],
    ['a: |-\n  one\nb: >\n  two\n  three\n\n  four\n', { a: 'one', b: 'two three\nfour\n' }],
    ['a: one\n  two\nb: 1', { a: 'one two', b: 1 }],
    ['a: {x: 1, y: [2, 3],\n  z: {}}\n', { a: { x: 1, y: [2, 3], z: {} } }],
    ['{"a": ["b", {"c": null}]}', { a: ['b', { c: null }] }],
    ['"a b": "x\\n\\u00e9"\n\'it\'\'s\': 1', { 'a b': 'x\né', "it's": 1 }],
    ['url: http://x/y#z\nb: a#b', { url: 'http://x/y#z', b: 'a#b' }],
    ['just text', 'just text'],
  ];
  it.each(rows)('%j', (text, value) => expect(fromYaml(text)).toEqual(value));

  it('reads back what is written', () => {
    const values = [
      { name: 'x', labels: { team: 'ml', n: '42', t: 'true', e: '', 'a-b': '- x', c: 'a: b', d: 'x #y' }, spec: { a: [1, [2, { b: null }], {}], deep: { er: [{ x: 1, y: [] }] } } },
      { rules: [{ condition: "has(x) &&\n  y == 'z'\n", result: 'unhealthy' }, { text: ' leads\nand ends ' }, { t: 'a\n\n' }, { t: 'tab\there' }] },
      { weird: ['\u202e', '\x1b[31m', '"', "'", '\\', '{', '[', '*a', '&b', '!c', '%', '@', '`', '?', '? a', '-', '- a', '|', '>'] },
    ];
    for (const value of values) expect(fromYaml(toYaml(value))).toEqual(value);
  });

  it('does not let a name change what all objects are', () => {
    const read = fromYaml('__proto__: {polluted: 1}') as object;
    expect(Object.keys(read)).toEqual(['__proto__']);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  const wrong: [string, number][] = [
    ['a: 1\n  b: 2', 2],
    ['a: 1\na: 2', 2],
    ['a:\n\t- x', 2],
    ['a: [1, 2', 1],
    ['a: "x', 1],
    ['a: *b', 1],
    ['a: 1\nb', 2],
    ['a: 1\n---\nb: 2', 2],
    ['a: b: c', 1],
    ['a: {x: 1, x: 2}', 1],
    ['a:\n  b: 1\n c: 2', 3],
    [`a: ${'['.repeat(60)}`, 1],
  ];
  it.each(wrong)('refuses %j and names line %i', (text, line) => {
    try {
      fromYaml(text);
    } catch (thrown) {
      expect(thrown).toBeInstanceOf(YamlError);
      expect((thrown as YamlError).line).toBe(line);
      return;
    }
    expect.unreachable();
  });
});
