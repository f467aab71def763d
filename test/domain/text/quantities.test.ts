import { expect, it } from 'vitest';
import { noun } from '../../../src/domain/text/quantities.ts';

it.each([
  [0, 'batch', 'batches'],
  [1, 'batch', 'batch'],
  [2, 'machine', 'machines'],
])('%i %s is written with "%s"', (n, what, written) => expect(noun(n, what)).toBe(written));
