/** Pictures of pages made small: a page has few colours, so a palette of 256 shows it as well in a third of the bytes. */
import { deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const COLOURS_MAX = 256;
/** Surfaces, text and the middle of shadows: kept as they are. */
const OFTEN = 160;

/** An eight-bit RGB or RGBA picture, as browsers take it, with a palette instead. */
export function withPalette(png: Buffer): Buffer {
  const { width, height, rgb } = decode(png);
  const palette = choose(rgb);
  const indexes = Buffer.alloc((width + 1) * height);
  const known = new Map<number, number>();
  for (let y = 0, from = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1, from += 3) {
      const colour = ((rgb[from] ?? 0) << 16) | ((rgb[from + 1] ?? 0) << 8) | (rgb[from + 2] ?? 0);
      let index = known.get(colour);
      if (index === undefined) {
        index = nearest(palette, colour);
        known.set(colour, index);
      }
      indexes[y * (width + 1) + 1 + x] = index;
    }
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const entries = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([SIGNATURE, chunk('IHDR', head), chunk('PLTE', entries), chunk('IDAT', deflateSync(indexes, { level: 9 })), chunk('IEND', Buffer.alloc(0))]);
}

/** The colours that are used most; of the others close ones count as one, so that a gradient does not push them out. */
function choose(rgb: Buffer): number[] {
  const exact = new Map<number, number>();
  for (let i = 0; i < rgb.length; i += 3) {
    const colour = ((rgb[i] ?? 0) << 16) | ((rgb[i + 1] ?? 0) << 8) | (rgb[i + 2] ?? 0);
    exact.set(colour, (exact.get(colour) ?? 0) + 1);
  }
  const sorted = [...exact].sort((a, b) => b[1] - a[1]).map(([colour]) => colour);
  for (let near = 0; ; near += 2) {
    const taken = new Set<number>();
    const chosen = sorted.slice(0, OFTEN);
    for (const colour of sorted.slice(OFTEN)) {
      const cell = near === 0 ? colour : ((colour >> 16) / near << 20) | ((((colour >> 8) & 255) / near) << 10) | ((colour & 255) / near);
      if (taken.has(cell)) continue;
      taken.add(cell);
      chosen.push(colour);
      if (chosen.length > COLOURS_MAX) break;
    }
    if (chosen.length <= COLOURS_MAX) return chosen;
  }
}

function nearest(palette: readonly number[], colour: number): number {
  let best = 0;
  let least = Infinity;
  for (const [i, one] of palette.entries()) {
    const red = (one >> 16) - (colour >> 16);
    const green = ((one >> 8) & 255) - ((colour >> 8) & 255);
    const blue = (one & 255) - (colour & 255);
    // Grey stays grey: a wrong tint is seen sooner than a wrong brightness.
    const far = red * red * 2 + green * green * 4 + blue * blue + 8 * ((red - green) ** 2 + (blue - green) ** 2);
    if (far < least) {
      least = far;
      best = i;
    }
  }
  return best;
}

function decode(png: Buffer): { width: number; height: number; rgb: Buffer } {
  const width = png.readUInt32BE(16);
  const height = png.readUInt32BE(20);
  const channels = png[25] === 6 ? 4 : png[25] === 2 ? 3 : 0;
  if (channels === 0 || png[24] !== 8) throw new Error('only eight-bit RGB and RGBA');
  const parts: Buffer[] = [];
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  const raw = inflateSync(Buffer.concat(parts));
  const stride = width * channels;
  const rgb = Buffer.alloc(width * height * 3);
  let above = Buffer.alloc(stride);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (stride + 1)] ?? 0;
    const row = Buffer.from(raw.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1)));
    for (let i = 0; i < stride; i += 1) {
      const left = i >= channels ? (row[i - channels] ?? 0) : 0;
      const up = above[i] ?? 0;
      const corner = i >= channels ? (above[i - channels] ?? 0) : 0;
      const guess = filter === 1 ? left : filter === 2 ? up : filter === 3 ? (left + up) >> 1 : filter === 4 ? paeth(left, up, corner) : 0;
      row[i] = ((row[i] ?? 0) + guess) & 255;
    }
    for (let x = 0; x < width; x += 1) row.copy(rgb, (y * width + x) * 3, x * channels, x * channels + 3);
    above = row;
  }
  return { width, height, rgb };
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc(body), body.length + 4);
  return out;
}

function crc(data: Buffer): number {
  let sum = 0xffffffff;
  for (const byte of data) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return (sum ^ 0xffffffff) >>> 0;
}
