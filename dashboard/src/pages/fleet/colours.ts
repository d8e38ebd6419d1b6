/** What a cell's colour says: its state, or a measurement on a ramp. Colours come from tokens.css, once per theme. */
import { GPU_STATES, NONE, NONE_W, type FleetModel } from '../../lib/fleet';

export const COLOURS = ['health', 'temperature', 'utilization', 'power', 'memory'] as const;
export type Colour = (typeof COLOURS)[number];

/** Steps of a ramp: more cannot be told apart. */
export const STEPS = 24;

export interface Scale {
  from: number;
  to: number;
  unit: string;
}

/** Fixed, so that the same colour means the same thing today and tomorrow. */
export const SCALES: Record<Exclude<Colour, 'health'>, Scale> = {
  temperature: { from: 25, to: 95, unit: '°C' },
  utilization: { from: 0, to: 100, unit: '%' },
  power: { from: 0, to: 1000, unit: 'W' },
  memory: { from: 0, to: 100, unit: '%' },
};

/** The place of a GPU's colour in the palette: states first, then the ramp, then `not measured`. */
export function indexOf(model: FleetModel, colour: Colour, gpu: number): number {
  if (colour === 'health') return model.state[gpu] ?? 0;
  const raw =
    colour === 'power'
      ? model.power[gpu]
      : (colour === 'temperature' ? model.temperature : colour === 'memory' ? model.memory : model.utilization)[gpu];
  if (raw === undefined || raw === (colour === 'power' ? NONE_W : NONE)) return GPU_STATES.length + STEPS;
  const { from, to } = SCALES[colour];
  const step = Math.floor(((raw - from) / (to - from)) * STEPS);
  return GPU_STATES.length + Math.min(STEPS - 1, Math.max(0, step));
}

/** All colours there are, by the index above. */
export function palette(style: CSSStyleDeclaration): string[] {
  const token = (name: string) => style.getPropertyValue(name).trim();
  const stops = [0, 1, 2, 3, 4].map((i) => rgb(token(`--ramp-${i}`)));
  return [...GPU_STATES.map((state) => token(`--${state.tone}-fill`)), ...ramp(stops), token('--cell-none')];
}

type Rgb = [number, number, number];

export function ramp(stops: readonly Rgb[]): string[] {
  return Array.from({ length: STEPS }, (_, i) => {
    const at = (i / (STEPS - 1)) * (stops.length - 1);
    const low = stops[Math.floor(at)] ?? [0, 0, 0];
    const high = stops[Math.ceil(at)] ?? low;
    const part = at - Math.floor(at);
    const mixed = low.map((value, channel) => Math.round(value + ((high[channel] ?? 0) - value) * part));
    return `rgb(${mixed.join(' ')})`;
  });
}

export function rgb(hex: string): Rgb {
  const value = Number.parseInt(hex.replace('#', ''), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}
