import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { adapterPage } from '../../docs/generate/describe.ts';
import { inPackage } from '../../src/config/package.ts';
import { catalogueAdapters, clusterAdapters } from '../../src/sources/registry.ts';
import type { CatalogueAdapter, ClusterAdapter, GenericCatalogueAdapter } from '../../src/sources/source.ts';

async function* nothing() {}

const known: CatalogueAdapter = {
  id: 'some-cloud',
  provider: { id: 77, name: 'Some Cloud' },
  baseUrl: 'https://api.some.example',
  endpoints: ['/v1/types'],
  credentials: 'none',
  memoryUnit: 'MiB',
  currency: 'SEK',
  facts: ['localDisk', 'architecture'],
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
  currencyFrom: 'per row',
  schedule: '3 * * * *',
  notes: 'Mind the gap.',
  catalogue: nothing,
};

it('docs/adapters.md matches the adapters (npm run docs updates it)', () => {
  expect(readFileSync(inPackage('docs/adapters.md'), 'utf8')).toBe(
    adapterPage(catalogueAdapters, clusterAdapters),
  );
});

it('the page lists the provider, units, variables and endpoints of each adapter', () => {
  const page = adapterPage([known, generic], []);
  expect(page).toContain(
    '| [some-cloud](#some-cloud) | Some Cloud (id 77) | none | MiB, whole GiB (Binary) | SEK | architecture, local disk | `1 2 * * *` |',
  );
  expect(page).toContain('### some-cloud\n\nReads `/v1/types`.');
  expect(page).toContain('| `SOME_CLOUD_URL` | address of the API | https://api.some.example |');
  expect(page).toContain('| `SOME_CLOUD_SCHEDULE` | schedule | `1 2 * * *` |');
  expect(page).not.toContain('SOME_CLOUD_TOKEN');
});

it('the page names the adapters without facts', () => {
  const silent = { ...known, id: 'silent-cloud', facts: [] };
  expect(adapterPage([known, generic, silent], [])).toContain(
    'outgoing rate in Mbit/s. These adapters have no facts: [any-list](#any-list), [silent-cloud](#silent-cloud).\n',
  );
  expect(adapterPage([known], [])).not.toContain('have no facts');
});

it('the page lists the options of an adapter, required or not, and its notes', () => {
  const page = adapterPage([known, generic], []);
  expect(page).toContain('| set by each row | per row |  | `3 * * * *` |');
  expect(page).toContain('| `ANY_LIST_URL` | URL, or path on this machine | required |');
  expect(page).toContain('| `ANY_LIST_TOKEN` | a token, sent as `X-Auth-Token` |  |');
  expect(page).toContain('| `ANY_LIST_PROVIDER` | option `provider`: who sells | required |');
  expect(page).toContain('| `ANY_LIST_PLACE_NAME` | option `placeName`: here \\| there | optional |');
  expect(page).toContain('\n\nMind the gap.\n\n');
});

it('the page lists how each adapter of clusters is read, its settings, options and notes', () => {
  const plane: ClusterAdapter = {
    id: 'plane',
    endpoints: ['/things'],
    credentials: 'basic',
    schedule: '4 * * * *',
    options: z.strictObject({ zone: z.string().optional().describe('the zone of all things') }),
    notes: 'Things fly.',
    clusters: nothing,
    watch: nothing,
  };
  const { watch: _, options: __, notes: ___, ...polled } = plane;
  const open = { ...polled, id: 'open', credentials: 'none', readsFiles: true } as const;
  const page = adapterPage(
    [],
    [plane, open, { ...polled, id: 'public', baseUrl: 'https://api.public.example' }],
  );
  expect(page).toContain(
    '| [plane](#plane-clusters) | `user:password` (HTTP Basic) | watched | `4 * * * *` |',
  );
  expect(page).toContain('| [open](#open-clusters) | none | polled | `4 * * * *` |');
  expect(page).toContain('### plane (clusters)\n\nReads `/things`, and watches them.');
  expect(page).toContain('| `tokenEnv` | name of the variable with `user:password` (HTTP Basic) |  |');
  expect(page).toContain('| `options.zone` | the zone of all things | optional |\n\nThings fly.');
  expect(page).toContain('### open (clusters)\n\nReads `/things`.\n\n');
  expect(page).toContain('| `url` | URL, or path on this machine | required |\n| `schedule` |');
  expect(page).toContain('| `url` | address of the API | https://api.public.example |');
});
