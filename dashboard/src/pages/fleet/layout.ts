/**
 * Where each GPU is on the map. Nodes are small blocks of cells, groups are blocks of nodes with a title, and groups
 * stand side by side like words in lines. Pure: the canvas only draws what this says.
 */

export interface LayoutNode {
  id: string;
  first: number;
  gpus: number;
}

export interface LayoutGroup {
  name: string;
  nodes: readonly LayoutNode[];
}

export interface Block {
  group: LayoutGroup;
  x: number;
  /** Of its title; the cells begin `HEAD_PX` below. */
  y: number;
  width: number;
  height: number;
  /** Nodes in a line, and the room one takes with its gap. */
  columns: number;
  nodeWidth: number;
  nodeHeight: number;
}

export interface Layout {
  /** From one cell to the next. */
  pitch: number;
  /** What is painted of it; the rest is the gap. */
  cell: number;
  blocks: Block[];
  width: number;
  height: number;
  /** Where each GPU is, by its place in the fleet's arrays; -1 where none is. */
  x: Float32Array;
  y: Float32Array;
}

export const HEAD_PX = 20;
const GROUP_GAP_PX = 18;
/** GPUs of a node stand in lines of four: eight are two lines, as in the machine. */
export const NODE_COLUMNS = 4;
/** A title must be readable even above a single node. */
const BLOCK_WIDTH_MIN = 112;

/** From large to small; the first that fits is taken. In less than three pixels one sick GPU is not seen. */
export const PITCHES = [22, 18, 16, 14, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3] as const;

/** The largest cells with which everything fits into the box; the smallest if nothing does. */
export function fit(groups: readonly LayoutGroup[], slots: number, width: number, height: number): Layout {
  let low = 0;
  let high = PITCHES.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    const { height: wanted } = blocksOf(groups, width, PITCHES[middle] ?? 3);
    if (wanted <= height) high = middle;
    else low = middle + 1;
  }
  return layout(groups, slots, width, PITCHES[low] ?? 3);
}

export function layout(groups: readonly LayoutGroup[], slots: number, width: number, pitch: number): Layout {
  const { blocks, height } = blocksOf(groups, width, pitch);
  const x = new Float32Array(slots).fill(-1);
  const y = new Float32Array(slots).fill(-1);
  for (const block of blocks) {
    for (const [i, node] of block.group.nodes.entries()) {
      const left = block.x + (i % block.columns) * block.nodeWidth;
      const top = block.y + HEAD_PX + Math.floor(i / block.columns) * block.nodeHeight;
      for (let place = 0; place < node.gpus; place += 1) {
        x[node.first + place] = left + (place % NODE_COLUMNS) * pitch;
        y[node.first + place] = top + Math.floor(place / NODE_COLUMNS) * pitch;
      }
    }
  }
  return { pitch, cell: cellOf(pitch), blocks, width, height, x, y };
}

function cellOf(pitch: number): number {
  return pitch >= 12 ? pitch - 2 : pitch - 1;
}

/** The gap between nodes: seen, but never wider than half a cell. */
function nodeGap(pitch: number): number {
  return pitch >= 8 ? Math.round(pitch * 0.45) : pitch >= 5 ? 2 : 1;
}

function blocksOf(groups: readonly LayoutGroup[], width: number, pitch: number): { blocks: Block[]; height: number } {
  const blocks: Block[] = [];
  const gap = nodeGap(pitch);
  let x = 0;
  let y = 0;
  let line = 0;
  for (const group of groups) {
    if (group.nodes.length === 0) continue;
    const most = group.nodes.reduce((max, node) => Math.max(max, node.gpus), 1);
    const nodeWidth = Math.min(most, NODE_COLUMNS) * pitch + gap;
    const nodeHeight = Math.ceil(most / NODE_COLUMNS) * pitch + gap;
    // Wider than high; then as wide as lets a whole number of such groups fill the line.
    const wanted = Math.ceil(Math.sqrt((group.nodes.length * 6 * nodeHeight) / nodeWidth)) * nodeWidth;
    const inLine = Math.max(1, Math.floor((width + GROUP_GAP_PX) / (Math.max(wanted, BLOCK_WIDTH_MIN) + GROUP_GAP_PX)));
    const room = (width - (inLine - 1) * GROUP_GAP_PX) / inLine;
    const columns = Math.min(group.nodes.length, Math.max(1, Math.floor((room + gap) / nodeWidth)));
    const blockWidth = Math.max(BLOCK_WIDTH_MIN, columns * nodeWidth - gap);
    const height = HEAD_PX + Math.ceil(group.nodes.length / columns) * nodeHeight;
    if (x > 0 && x + blockWidth > width) {
      x = 0;
      y += line + GROUP_GAP_PX;
      line = 0;
    }
    blocks.push({ group, x, y, width: blockWidth, height, columns, nodeWidth, nodeHeight });
    x += blockWidth + GROUP_GAP_PX;
    line = Math.max(line, height);
  }
  return { blocks, height: y + line };
}

export interface Hit {
  group: LayoutGroup;
  node: LayoutNode;
  place: number;
}

/** What is at this point. */
export function hit(layout: Layout, x: number, y: number): Hit | null {
  for (const block of layout.blocks) {
    if (x < block.x || x >= block.x + block.width || y < block.y + HEAD_PX || y >= block.y + block.height) continue;
    const column = Math.floor((x - block.x) / block.nodeWidth);
    const line = Math.floor((y - block.y - HEAD_PX) / block.nodeHeight);
    if (column >= block.columns) return null;
    const node = block.group.nodes[line * block.columns + column];
    if (!node) return null;
    const left = Math.floor((x - block.x - column * block.nodeWidth) / layout.pitch);
    const top = Math.floor((y - block.y - HEAD_PX - line * block.nodeHeight) / layout.pitch);
    const place = top * NODE_COLUMNS + left;
    return left < NODE_COLUMNS && place < node.gpus ? { group: block.group, node, place } : null;
  }
  return null;
}
