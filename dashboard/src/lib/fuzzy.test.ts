import { expect, it } from 'vitest';
import { best } from './fuzzy';

const NAMES = ['trainers-17', 'atlas.trainers', 'Fleet', 'Drain gpu-17', 'gpu-170'];

it.each([
  ['fleet', ['Fleet']],
  ['17', ['trainers-17', 'Drain gpu-17', 'gpu-170']],
  ['gpu-17', ['Drain gpu-17', 'gpu-170']],
  ['drain 17', ['Drain gpu-17']],
  ['trn', ['trainers-17', 'atlas.trainers']],
  ['zzz', []],
])('%j finds %j', (typed, found) => {
  expect(best(typed, NAMES, (name) => name, 10)).toEqual(found);
});
