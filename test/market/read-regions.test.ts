import { expect, it } from 'vitest';
import { emptyIndex } from '../../src/market/catalogue-index.ts';
import { mergeRegions } from '../../src/market/read-regions.ts';
import type { Documents } from '../../src/snapshot/read/documents.ts';

it('knows an index since the time of its oldest region, in any order', async () => {
  const knownAt = [7, 5, 9];
  const readApart: Documents['readApart'] = async ({ regionId }) => {
    return { document: undefined, tier: 'redis', knownAt: knownAt[regionId - 1] };
  };
  const { knownSince } = await mergeRegions(emptyIndex(), new Map([1, 2, 3].map((id) => [id, 0])), {
    documents: { readApart } as Documents,
    memoryLimit: 1e9,
    isOver: () => false,
  });
  expect(knownSince).toBe(5);
});
