import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { inPackage } from '../../src/package.ts';
import { adapterPage } from '../../src/sources/describe.ts';
import { catalogueAdapters, clusterAdapters } from '../../src/sources/registry.ts';
import type { CatalogueAdapter, GenericCatalogueAdapter } from '../../src/sources/source.ts';

async function* nothing() {}

const known: CatalogueAdapter = {
  id: 'some-cloud',
  provider: { id: 77, name: 'Some Cloud' },
  baseUrl: 'https://api.some.example',
  endpoints: ['/v1/types'],
  credentials: 'none',
  memoryUnit: 'MiB',
  currency: 'SEK',
  schedule: '1 2 * * *',
  catalogue: nothing,
};

const generic: GenericCatalogueAdapter = {
  id: 'any-list',
  options: z.strictObject({
    provider: z.string().describe('who sells'),
    placeName: z.string().optional().describe('here | there'),
  }),
  endpoints: ['{url}'],
  readsFiles: true,
  credentials: 'x-auth-token',
  currencyFrom: 'as it comes',
  schedule: '3 * * * *',
  notes: 'Mind the gap.',
  catalogue: nothing,
};

it('docs/adapters.md is what the adapters say of themselves (node docs/adapters.ts writes it)', () => {
  expect(readFileSync(inPackage('docs/adapters.md'), 'utf8')).toBe(
    adapterPage(catalogueAdapters, clusterAdapters),
  );
});

it('the page has for each adapter its provider, units, variables and endpoints', () => {
  const page = adapterPage([known, generic], []);
  expect(page).toContain(
    '| [some-cloud](#some-cloud) | Some Cloud (id 77) | none | MiB, whole GiB of them (Binary) | SEK | `1 2 * * *` |',
  );
  expect(page).toContain('### some-cloud\n\nReads `/v1/types`.');
  expect(page).toContain('| `SOME_CLOUD_URL` | where the API is | https://api.some.example |');
  expect(page).toContain('| `SOME_CLOUD_SCHEDULE` | when it is read | `1 2 * * *` |');
  expect(page).not.toContain('SOME_CLOUD_TOKEN');
});

it('the page has the options of an adapter that some must be given, and its notes', () => {
  const page = adapterPage([known, generic], []);
  expect(page).toContain('| as each row says | as it comes | `3 * * * *` |');
  expect(page).toContain('| `ANY_LIST_URL` | URL, or path on this machine | must be given |');
  expect(page).toContain('| `ANY_LIST_TOKEN` | a token, sent as `X-Auth-Token` |  |');
  expect(page).toContain('| `ANY_LIST_PROVIDER` | option `provider`: who sells | must be given |');
  expect(page).toContain('| `ANY_LIST_PLACE_NAME` | option `placeName`: here \\| there | may be left out |');
  expect(page).toContain('\n\nMind the gap.\n\n');
});
