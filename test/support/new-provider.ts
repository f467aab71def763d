/**
 * `npm run new:provider <id>`: writes the adapter of a provider, its conformance case and its fixtures. They describe
 * an invented API and pass each check, so that each step from there to the real API can be tested.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ALL_SETTINGS } from '../../src/app/features.ts';
import { catalogueAdapters } from '../../src/sources/registry.ts';
import { environmentKey } from '../../src/sources/schema/options.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Ids from here on belong to providers without an adapter. */
const FIRST_UNNAMED = 1000;
const LONGEST_ID = 40;

export interface NewProvider {
  /** The stable id in the API. */
  readonly number: number;
  /** Contents by path, relative to the repository's root. */
  readonly files: Readonly<Record<string, string>>;
}

/**
 * Returns the files of a new provider.
 * @param exists whether there is a file at a path
 * @throws Error for a malformed or used id; its message states the remedy
 */
export function newProvider(
  id: string,
  adapters: readonly { readonly id: string; readonly provider?: { readonly id: number } | undefined }[],
  exists: (path: string) => boolean,
): NewProvider {
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(id) || id.length > LONGEST_ID)
    throw new Error(
      `the id must be lower-case letters, digits and single hyphens, at most ${LONGEST_ID}, such as acme-cloud; it is ${JSON.stringify(id)}`,
    );
  const prefix = environmentKey(id, '');
  const setting = [...Object.keys(ALL_SETTINGS), 'CLUSTERS_URL'].find((name) => name.startsWith(prefix));
  if (setting !== undefined)
    throw new Error(
      `the id ${id} is taken: the variables of its source would begin as the setting ${setting}`,
    );
  const number = Math.max(0, ...adapters.map(({ provider }) => provider?.id ?? 0)) + 1;
  if (number >= FIRST_UNNAMED) throw new Error(`no provider id below ${FIRST_UNNAMED} is left`);
  const files = {
    [`src/sources/providers/${id}.ts`]: adapterText(id, number),
    [`test/conformance/${id}.ts`]: caseText(id),
    [`test/fixtures/${id}/regions.json`]: REGIONS,
    [`test/fixtures/${id}/types-1.json`]: TYPES_1,
    [`test/fixtures/${id}/types-2.json`]: TYPES_2,
  };
  const taken = Object.keys(files).find(exists);
  if (taken !== undefined) throw new Error(`the id ${id} is taken: ${taken} exists; choose another id`);
  return { number, files };
}

/** `acme-cloud` → `Acme Cloud`. */
function nameOf(id: string): string {
  return id.replaceAll(/(^|-)([a-z0-9])/g, (_, hyphen, letter) => (hyphen ? ' ' : '') + letter.toUpperCase());
}

const REGIONS = `{
  "regions": [{ "code": "north", "name": "North" }, { "code": "south", "name": "South" }]
}
`;

const TYPES_1 = `{
  "types": [
    { "name": "small", "vcpus": 2, "memory_gib": 4, "hourly_price": "0.02", "regions": ["north", "south"] }
  ],
  "next": "b"
}
`;

const TYPES_2 = `{
  "types": [
    { "name": "large", "vcpus": 8, "memory_gib": 32, "hourly_price": "0.16", "regions": ["north"] },
    { "name": "odd", "vcpus": 1.5, "memory_gib": 2, "hourly_price": "0.01", "regions": ["north"] }
  ],
  "next": null
}
`;

function adapterText(id: string, number: number): string {
  return `import { z } from 'zod';
import { memory } from '../../domain/machine.ts';
import { pageOf, pagesByToken, wholeList } from '../http/lists.ts';
import { amount, count, label, quantity, someRows } from '../schema/fields.ts';
import { offerItem, rejectedOffer, usableRegions, usableRows } from '../schema/items.ts';
import type { CatalogueAdapter, CatalogueItem } from '../source.ts';

const REGIONS = '/v1/regions';
const TYPES = '/v1/types';

const RegionList = z.object({ regions: someRows });
const Region = z.object({ code: label, name: label });

/** \`next\` is the cursor of the next page, null on the last one. */
const TypePage = pageOf('types', { next: z.string().nullable() });

const Type = z.object({
  name: label,
  vcpus: count,
  memory_gib: quantity,
  hourly_price: amount,
  /** Regions that sell it. */
  regions: z.array(label),
});
type Type = z.infer<typeof Type>;

/** Source: the address of the API's documentation. */
export const adapter: CatalogueAdapter = {
  id: '${id}',
  provider: { id: ${number}, name: '${nameOf(id)}' },
  baseUrl: 'https://api.${id}.example',
  endpoints: [REGIONS, TYPES],
  credentials: 'bearer',
  memoryUnit: 'GiB',
  currency: 'EUR',
  schedule: '17 * * * *',

  async *catalogue({ http }) {
    const listed = (await http.json(REGIONS, RegionList)).data.regions;
    const regions = yield* usableRegions(listed, Region, 'code', 'region');
    const known = new Set(regions.map(({ code }) => code));

    const pages = pagesByToken(http, TYPES, TypePage, {}, (page) => page.next, 'cursor');
    const types = yield* wholeList(TYPES, 'types', pages);
    for (const type of yield* usableRows(types, Type, 'name', 'type')) yield* offers(type, known);
  },
};

function* offers(type: Type, known: ReadonlySet<string>): Generator<CatalogueItem> {
  const { name, vcpus: cpu } = type;
  const price = { amount: type.hourly_price, per: 'hour', currency: adapter.currency } as const;
  const machine = { name, cpu, ...memory(type.memory_gib, adapter.memoryUnit), price };
  for (const regionCode of type.regions) {
    if (known.has(regionCode)) {
      yield offerItem({ regionCode, ...machine });
    } else {
      const problem = \`regions names \${regionCode}, which \${REGIONS} does not list as a usable row\`;
      yield rejectedOffer(name, regionCode, problem);
    }
  }
}
`;
}

function caseText(id: string): string {
  return `import { type CatalogueCase, fixture, offersIn } from './catalogue-case.ts';

const REGIONS = '/v1/regions';
const TYPES = '/v1/types';

const offer = offersIn('EUR');

export const catalogueCase: CatalogueCase = {
  now: new Date('2026-03-01T00:00:00Z'),
  pages: [
    {
      path: REGIONS,
      query: {},
      json: fixture('${id}/regions.json'),
      list: 'regions',
      required: ['/regions', '/regions/0/code', '/regions/0/name'],
      prices: [],
    },
    {
      path: TYPES,
      query: {},
      json: fixture('${id}/types-1.json'),
      list: 'types',
      required: [
        '/types',
        '/types/0/name',
        '/types/0/vcpus',
        '/types/0/memory_gib',
        '/types/0/hourly_price',
        '/types/0/regions',
        '/next',
      ],
      prices: ['/types/0/hourly_price'],
    },
    {
      path: TYPES,
      query: { cursor: 'b' },
      json: fixture('${id}/types-2.json'),
      list: 'types',
      required: ['/types', '/next'],
      prices: ['/types/0/hourly_price'],
    },
  ],
  empty: { [REGIONS]: { regions: [] }, [TYPES]: { types: [], next: null } },
  uncounted: [REGIONS, TYPES],
  regions: { north: 'North', south: 'South' },
  offers: [
    offer('small', 'north', 2, 4, '0.02'),
    offer('small', 'south', 2, 4, '0.02'),
    offer('large', 'north', 8, 32, '0.16'),
  ],
  rejected: [{ key: 'odd', reason: /^vcpus must be a whole number above 0; it is 1\\.5$/ }],
};
`;
}

if (import.meta.main) {
  try {
    const id = process.argv[2] ?? '';
    const { number, files } = newProvider(id, catalogueAdapters, (path) => existsSync(join(ROOT, path)));
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(ROOT, path)), { recursive: true });
      writeFileSync(join(ROOT, path), text);
      console.log(`wrote ${path}`);
    }
    console.log(
      `${nameOf(id)} is provider ${number}. Next: npm run docs, then docs/adding-a-provider.md, "Change one thing"`,
    );
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
