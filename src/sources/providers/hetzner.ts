import { z } from 'zod';
import type { ExclusionReason } from '../../domain/exclusion.ts';
import { memory } from '../../domain/memory.ts';
import { isPositive } from '../../domain/price.ts';
import { amount, count, label, quantity } from '../schema/fields.ts';
import { labelIn, readRow, rejectedRow, unusableRegion } from '../schema/rows.ts';
import { type CatalogueAdapter, type CatalogueItem, SourceError, type SourceHttp } from '../source.ts';

/** The largest page that the API gives. */
const PER_PAGE = 50;
/** Many times what there is; an upstream that always has one more page is broken. */
const MOST_PAGES = 200;

const Pagination = z.object({
  page: z.int(),
  next_page: z.int().nullable(),
  /** Null where the API does not count. */
  total_entries: z.int().nullish(),
});
const Meta = z.object({ pagination: Pagination });

interface Page {
  readonly rows: readonly unknown[];
  readonly pagination: z.infer<typeof Pagination>;
}

const LocationPage = z
  .object({ locations: z.array(z.unknown()), meta: Meta })
  .transform(({ locations, meta }): Page => ({ rows: locations, pagination: meta.pagination }));

const ServerTypePage = z
  .object({ server_types: z.array(z.unknown()), meta: Meta })
  .transform(({ server_types, meta }): Page => ({ rows: server_types, pagination: meta.pagination }));

const Location = z.object({ name: label, city: label });

const Deprecation = z.object({ announced: z.string().optional() });

const ServerType = z.object({
  name: label,
  cores: count,
  memory: quantity,
  /** False has stood beside a filled `deprecation`: only true means something. */
  deprecated: z.boolean().nullish(),
  deprecation: Deprecation.nullish(),
  prices: z.array(z.unknown()),
  /** Newer payloads: where the type is sold at all, with what holds there. Its `deprecation` outranks the one above. */
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
  schedule: '17 * * * *',

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
  const { name, cores: cpu } = type;
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
      const excluded = exclusion(type, value.location, price.amount, now);
      const offer = { regionCode: value.location, name, cpu, ram, ramUnit, price };
      yield { kind: 'offer', offer: excluded === undefined ? offer : { ...offer, excluded } };
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

function exclusion(
  type: ServerType,
  location: string,
  price: string,
  now: Date,
): ExclusionReason | undefined {
  const here = type.locations?.find((candidate) => candidate.name === location);
  const deprecated =
    here?.deprecation === undefined
      ? type.deprecated === true || isAnnounced(type.deprecation, now)
      : isAnnounced(here.deprecation, now);
  if (deprecated) return 'deprecated';
  if (type.locations && (here === undefined || here.available === false)) return 'unavailable';
  return isPositive(price) ? undefined : 'zero_price';
}

/** An announcement without a readable date counts as made. */
function isAnnounced(deprecation: z.infer<typeof Deprecation> | null | undefined, now: Date): boolean {
  return deprecation != null && !(Date.parse(deprecation.announced ?? '') > now.getTime());
}

async function* list(
  http: SourceHttp,
  path: string,
  of: string,
  schema: z.ZodType<Page>,
): AsyncGenerator<CatalogueItem, unknown[]> {
  const rows: unknown[] = [];
  for (let page = 1, more = true; more; page++) {
    const { data } = await http.json(path, schema, { query: { page, per_page: PER_PAGE } });
    const { pagination } = data;
    if (pagination.page !== page || (pagination.next_page ?? page + 1) !== page + 1) {
      throw new SourceError(
        'invalid',
        `${path}: asked for page ${page}, meta.pagination says that it is ${pagination.page} and ${pagination.next_page} follows`,
      );
    }
    if (page > MOST_PAGES) throw new SourceError('invalid', `${path} has more than ${MOST_PAGES} pages`);
    rows.push(...data.rows);
    more = pagination.next_page !== null;
    const advertised = pagination.total_entries ?? undefined;
    if (!more && advertised !== undefined) yield { kind: 'total', of, advertised, fetched: rows.length };
  }
  if (rows.length === 0)
    throw new SourceError('invalid', `${path} lists nothing; an empty answer is never taken for "all gone"`);
  return rows;
}
