import { expect, it } from 'vitest';
import { applyPatch, changedLines, clashes, diffLines, leaves, mergePatch } from './change';

const base = { spec: { nodeCount: 2, zones: ['a', 'b'], deep: { x: 1, y: 2 } }, labels: { team: 'ml' } };

it('a merge patch says what changed, and applied to the old gives the new', () => {
  const rows = [
    base,
    { ...base, labels: {} },
    { spec: { nodeCount: 3, zones: ['a'], deep: { x: 1 }, more: { a: { b: 1 } } }, labels: { team: 'ml', a: 'b' } },
  ];
  for (const to of rows) expect(applyPatch(base, mergePatch(base, to))).toEqual(to);
  expect(mergePatch(base, base)).toEqual({});
  expect(mergePatch(base, { spec: { nodeCount: 3, zones: ['a', 'b'], deep: { x: 1 } }, labels: { team: 'ml' } })).toEqual({
    spec: { nodeCount: 3, deep: { y: null } },
  });
});

it('two changes clash only where both changed the same thing differently', () => {
  const with_ = (spec: object) => ({ ...base, spec: { ...base.spec, ...spec } });
  expect(clashes(base, with_({ nodeCount: 3 }), with_({ zones: ['c'] }))).toEqual([]);
  expect(clashes(base, with_({ nodeCount: 3 }), with_({ nodeCount: 3 }))).toEqual([]);
  expect(clashes(base, with_({ nodeCount: 3 }), with_({ nodeCount: 4 }))).toEqual(['spec.nodeCount']);
  expect(clashes(base, with_({ deep: { x: 9, y: 2 } }), with_({ deep: { y: 2 } }))).toEqual(['spec.deep.x']);
});

it('leaves are the words of a command', () => {
  expect(leaves({ nodeCount: 3, deep: { y: null, z: { q: [1] } } })).toEqual([
    { path: 'nodeCount', value: 3 },
    { path: 'deep.y', value: null },
    { path: 'deep.z.q', value: [1] },
  ]);
});

it('lines: what is far from a change is folded', () => {
  const before = Array.from({ length: 20 }, (_, i) => `line ${i}`).join('\n');
  const diff = diffLines(before, before.replace('line 10', 'line ten'), 1);
  expect(diff.map((line) => `${line.kind} ${line.text}`)).toEqual([
    'gap 9 unchanged lines',
    'same line 9',
    'removed line 10',
    'added line ten',
    'same line 11',
    'gap 8 unchanged lines',
  ]);
  expect(changedLines(diff)).toEqual({ added: 1, removed: 1 });
  expect(diffLines('a\nb\n', 'a\nb\n').every((line) => line.kind === 'gap')).toBe(true);
});
