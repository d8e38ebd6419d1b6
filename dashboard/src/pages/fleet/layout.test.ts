import { describe, expect, it } from 'vitest';
import { fit, HEAD_PX, hit, layout, PITCHES, type LayoutGroup } from './layout';

function groups(sizes: number[], gpus = 8): { groups: LayoutGroup[]; slots: number } {
  let first = 0;
  const made = sizes.map((size, g) => ({
    name: `g${g}`,
    nodes: Array.from({ length: size }, (_, n) => {
      const node = { id: `g${g}n${n}`, first, gpus };
      first += gpus;
      return node;
    }),
  }));
  return { groups: made, slots: first };
}

describe('layout', () => {
  it('gives every GPU a place of its own, which the pointer finds again', () => {
    const { groups: some, slots } = groups([3, 40, 1, 200]);
    const made = layout(some, slots, 900, 9);
    const seen = new Set<string>();
    for (const block of made.blocks) {
      expect(block.x + block.width).toBeLessThanOrEqual(1100);
      for (const node of block.group.nodes)
        for (let place = 0; place < node.gpus; place += 1) {
          const x = made.x[node.first + place] ?? -1;
          const y = made.y[node.first + place] ?? -1;
          expect(seen.has(`${x}/${y}`)).toBe(false);
          seen.add(`${x}/${y}`);
          expect(hit(made, x + 1, y + 1)).toMatchObject({ node: { id: node.id }, place });
        }
    }
    expect(seen.size).toBe(slots);
  });

  it('finds nothing in gaps, titles and outside', () => {
    const { groups: one, slots } = groups([2], 1);
    const made = layout(one, slots, 400, 20);
    expect(hit(made, 1, HEAD_PX - 2)).toBeNull();
    expect(hit(made, 390, HEAD_PX + 5)).toBeNull();
    expect(hit(made, 5, 4000)).toBeNull();
  });

  it('groups without nodes take no room', () => {
    expect(layout([{ name: 'empty', nodes: [] }], 0, 400, 10)).toMatchObject({ blocks: [], height: 0 });
  });

  it('fits 80,000 GPUs, and takes large cells for few', () => {
    const many = groups(Array<number>(20).fill(500));
    const small = fit(many.groups, many.slots, 1400, 1100);
    expect(small.height).toBeLessThanOrEqual(1100);
    expect(small.pitch).toBeGreaterThanOrEqual(3);
    const few = groups([4]);
    expect(fit(few.groups, few.slots, 1200, 600).pitch).toBe(PITCHES[0]);
  });

  it('takes the smallest cells where nothing fits', () => {
    const many = groups([10_000]);
    expect(fit(many.groups, many.slots, 300, 100).pitch).toBe(PITCHES.at(-1));
  });
});
