import { z } from 'zod';
import type { ExclusionReason } from '../../domain/exclusion.ts';
import { memory } from '../../domain/machine.ts';
import { type ListPage, wholeList } from '../http/listing.ts';
import { anotherPage, pagesOf } from '../http/pages.ts';
import { architecture, cpuKindBy, diskIn } from '../schema/facts.ts';
import { amount, count, label, quantity } from '../schema/fields.ts';
import { offerItem } from '../schema/offers.ts';
import { labelIn, readRow, rejectedRow, unusableRegion } from '../schema/rows.ts';
import type { CatalogueAdapter, CatalogueItem, SourceHttp } from '../source.ts';

/** The largest page that the API gives. */
const PER_PAGE = 50;

const Pagination = z.object({
  page: z.int(),
  next_page: z.int().nullable(),
  /** Null where the API does not count. */
  total_entries: z.int().nullish(),
});
const Meta = z.object({ pagination: Pagination });

interface Page extends ListPage<unknown> {
  readonly page: number;
  readonly next: number | undefined;
}

const LocationPage = z
  .object({ locations: z.array(z.unknown()), meta: Meta })
  .transform(({ locations, meta }) => page(locations, meta));

const ServerTypePage = z
  .object({ server_types: z.array(z.unknown()), meta: Meta })
  .transform(({ server_types, meta }) => page(server_types, meta));

const Location = z.object({ name: label, city: label });

const Deprecation = z.object({ announced: z.string().optional() });

const ServerType = z.object({
  name: label,
  cores: count,
  memory: quantity,
  architecture,
  cpu_type: cpuKindBy({ shared: 'shared', dedicated: 'dedicated' }),
  /** GB; of the host, unless `storage_type` is `network`. */
  disk: diskIn('GB'),
  storage_type: z.string().optional().catch(undefined),
  /** False has been seen beside a filled `deprecation`: only true is reliable. */
  deprecated: z.boolean().nullish(),
  deprecation: Deprecation.nullish(),
  prices: z.array(z.unknown()),
  /** In newer payloads: the locations that sell the type. Their `deprecation` outranks the one above. */
  locations: z
    .array(z.object({ name: label, deprecation: Deprecation.nullish(), available: z.boolean().nullish() }))
    .nullish(),
});
type ServerType = z.infer<typeof ServerType>;

const Price = z.object({ location: label, price_hourly: z.object({ net: amount }) });

/** Source: https://docs.hetzner.cloud/reference/cloud#server-types and its changelog of 2025-09-24 and 2026-04-01. */
export const adapter: CatalogueAdapter = {
  id: 'hetzner',
  provider: { id: 5, name: 'Hetzner' },
  baseUrl: 'https://api.hetzner.cloud',
  endpoints: ['/v1/locations', '/v1/server_types'],
  credentials: 'bearer',
  memoryUnit: 'GB',
  currency: 'EUR',
  facts: ['architecture', 'cpuKind', 'localDisk'],
  schedule: '17 * * * *',
  notes:
    'Hetzner bills at most a monthly price, which is not read. The hourly price times 730 hours overstates the month by 15 ' +
    'to 22 %, for `cpx11` by 19 %.',

  async *catalogue({ http, now }) {
    const locations = yield* list(http, '/v1/locations', 'locations', LocationPage);
    const known = new Set<string>();
    for (const [index, row] of locations.entries()) {
      const { value, reason } = readRow(Location, row);
      const code = labelIn(row, 'name');
      if (value !== undefined) {
        known.add(value.name);
        yield { kind: 'region', code: value.name, name: value.city };
      } else {
        yield unusableRegion(code, `location ${index + 1}`, reason);
      }
    }

    const types = yield* list(http, '/v1/server_types', 'server_types', ServerTypePage);
    for (const [index, row] of types.entries()) {
      const { value, reason } = readRow(ServerType, row);
      const name = labelIn(row, 'name');
      if (value !== undefined) yield* offers(value, known, now());
      else yield rejectedRow(name ?? `server type ${index + 1}`, reason, { name });
    }
  },
};

function* offers(type: ServerType, known: ReadonlySet<string>, now: Date): Generator<CatalogueItem> {
  const { name, cores: cpu, architecture, cpu_type: cpuKind } = type;
  const localDisk = type.storage_type === 'local' ? type.disk : undefined;
  const facts = { architecture, cpuKind, localDisk };
  const { ram, unit: ramUnit } = memory(type.memory, adapter.memoryUnit);
  const unpriced = new Set(type.locations?.map((location) => location.name));
  for (const [index, row] of type.prices.entries()) {
    const { value, reason } = readRow(Price, row, ['prices', index]);
    const regionCode = labelIn(row, 'location');
    if (regionCode !== undefined) unpriced.delete(regionCode);
    const key = `${name}@${regionCode ?? `prices[${index}]`}`;
    if (value === undefined) {
      yield rejectedRow(key, reason, { name, regionCode });
    } else if (!known.has(value.location)) {
      const problem = `prices[${index}].location names ${value.location}, which /v1/locations does not list or not as it must`;
      yield rejectedRow(key, problem, { name, regionCode });
    } else {
      const price = { amount: value.price_hourly.net, per: 'hour', currency: adapter.currency } as const;
      const excluded = exclusion(type, value.location, now);
      yield offerItem({ regionCode: value.location, name, cpu, ram, ramUnit, price, facts }, excluded);
    }
  }
  for (const regionCode of unpriced) {
    yield rejectedRow(`${name}@${regionCode}`, 'prices has no entry for a location that locations lists', {
      name,
      regionCode,
    });
  }
  if (type.prices.length === 0 && unpriced.size === 0) {
    yield rejectedRow(name, 'prices is empty; it must have an entry for each location that sells the type', {
      name,
    });
  }
}

function exclusion(type: ServerType, location: string, now: Date): ExclusionReason | undefined {
  const here = type.locations?.find((candidate) => candidate.name === location);
  const deprecated =
    here?.deprecation === undefined
      ? type.deprecated === true || isAnnounced(type.deprecation, now)
      : isAnnounced(here.deprecation, now);
  if (deprecated) return 'deprecated';
  if (here?.available === false) return 'sold_out';
  return type.locations && here === undefined ? 'unavailable' : undefined;
}

/** An announcement without a readable date counts as made. */
function isAnnounced(deprecation: z.infer<typeof Deprecation> | null | undefined, now: Date): boolean {
  return deprecation != null && !(Date.parse(deprecation.announced ?? '') > now.getTime());
}

function page(rows: readonly unknown[], { pagination }: z.infer<typeof Meta>): Page {
  const { page, next_page, total_entries: total } = pagination;
  return { rows, total, page, next: next_page ?? undefined };
}

function list(
  http: SourceHttp,
  path: string,
  of: string,
  schema: z.ZodType<Page>,
): AsyncGenerator<CatalogueItem, unknown[]> {
  const pages = pagesOf(
    path,
    1,
    (page) => http.json(path, schema, { query: { page, per_page: PER_PAGE } }),
    ({ data: { page, next } }, asked) => {
      if (page !== asked || (next ?? asked + 1) !== asked + 1)
        throw anotherPage(path, asked, `meta.pagination says that it is ${page} and ${next} follows`);
      return next;
    },
  );
  return wholeList(path, of, pages);
}
