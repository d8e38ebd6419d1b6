import { expect, it } from 'vitest';
// @ts-expect-error A script without types of its own.
import { generated } from '../../scripts/types.mjs';
import types from './types.ts?raw';

it('the types are those of the OpenAPI document (npm run types)', () => {
  expect(types).toBe(generated());
});
