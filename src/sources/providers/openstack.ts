import { z } from 'zod';
import { memory } from '../../domain/machine.ts';
import { nothingListed, pagesOf } from '../http/lists.ts';
import { columnTable, PriceColumns, requiredColumns } from '../price-columns.ts';
import { PRICE_LIST, priceRowsIn } from '../price-rows.ts';
import { architectureNamed, cpuKind } from '../schema/facts.ts';
import { count, label } from '../schema/fields.ts';
import { offerItem, orRejected, rejectedRow } from '../schema/items.ts';
import { WrongUnits } from '../schema/left-out.ts';
import { labelIn, parseRow, type Row, readRow, unusable, valueIn } from '../schema/rows.ts';
import type { CatalogueItem, GenericCatalogueAdapter, RejectedRow, SourceHttp } from '../source.ts';
import { badAnswer } from '../source.ts';

const FLAVORS = '/v2.1/flavors/detail';
/** The first version with extra specs, which name accelerators. */
const MICROVERSION = { 'openstack-api-version': 'compute 2.61' };
const DEVICE = /^(resources\d*:(VGPU$|PGPU$|CUSTOM_.*GPU)|(pci_passthrough:alias|accel:device_profile)$)/i;

/** Prefix of a trait that the host must have, e.g. `trait:HW_ARCH_AARCH64`. */
const ARCHITECTURE = 'trait:HW_ARCH_';

const Options = z.strictObject({
  provider: label.describe('name of the provider, as readers see it'),
  region: label.describe('code of the region'),
  regionName: label.optional().describe('name of the region; its code when absent'),
  prices: z
    .string({ error: 'is missing; it must be a URL or a path' })
    .min(1, { error: 'must be a URL or a path' })
    .describe('the price list: a URL, read without credentials, or a path on this machine'),
});

const FlavorPage = z.object({
  flavors: z.array(z.unknown()),
  /** Nova documents that the last page omits it. */
  flavors_links: z.array(z.object({ rel: z.string(), href: z.string() })).optional(),
});

const Flavor = z.object({
  name: label,
  vcpus: count,
  ram: count,
  'OS-FLV-DISABLED:disabled': z.boolean().optional(),
  'os-flavor-access:is_public': z.boolean().optional(),
  extra_specs: z.record(z.string(), z.unknown()).optional(),
});
type Flavor = z.infer<typeof Flavor>;

const FlavorPrice = PriceColumns.pick({
  name: true,
  price: true,
  per: true,
  currency: true,
  excluded: true,
}).extend({
  region_code: label
    .nullish()
    .describe('a row that names another region than the source is skipped: one list serves several regions'),
});
type FlavorPrice = z.infer<typeof FlavorPrice>;

/** Source: https://docs.openstack.org/api-ref/compute/#list-flavors-with-details. */
export const adapter: GenericCatalogueAdapter = {
  id: 'openstack',
  options: Options,
  endpoints: [FLAVORS, '{prices}'],
  readsFiles: false,
  credentials: 'x-auth-token',
  memoryUnit: 'MiB',
  currencyFrom: 'as each row of the price list says',
  facts: ['architecture', 'cpuKind'],
  schedule: '22 * * * *',
  notes: `The URL is that of the compute service, with or without its \`/v2.1\`. Configure one source for each region. Nova
must support microversion 2.61 (Rocky, 2018). A Keystone token expires after hours: let a [command](#credentials) print one,
such as \`openstack token issue -f value -c id\`. OpenStack has no prices. They come from a list in CSV or JSON, in the form
that [price-list](#price-list) reads, by the name of the flavor. The shape of a machine comes from Nova; its columns in the
list are ignored.

${columnTable(FlavorPrice)}

A flavor without a price in the list is rejected and keeps its last values; too many of them hold the batch
(\`limits.rejectedShare\`). List a flavor that is not for sale with \`excluded\`, and a price of 0 if it has none. Flavors that
are disabled or not public are \`unavailable\`; flavors with a GPU, a passed-through device or a device profile are
\`accelerated\`.`,

  async *catalogue({ http, options }) {
    const { region, regionName = region, prices } = Options.parse(options);
    yield { kind: 'region', code: region, name: regionName };
    const { listed, nameless } = await readPrices(http.at(prices, 'none'), region);
    yield* nameless;
    const wrongUnits = new WrongUnits();
    let seen = 0;
    for await (const row of flavors(http)) {
      seen += 1;
      const name = labelIn(row, 'name');
      const key = name === undefined ? `flavor ${seen}` : `${name}@${region}`;
      const item = orRejected(key, { name, regionCode: region }, () => offer(row, region, listed));
      wrongUnits.note(item);
      yield item;
    }
    yield* wrongUnits.rows();
  },
};

interface ListedPrice {
  readonly at: string;
  readonly read: Row<FlavorPrice>;
}

async function readPrices(http: SourceHttp, region: string) {
  const listed = new Map<string, ListedPrice[]>();
  const nameless: RejectedRow[] = [];
  const answer = await http.stream('', PRICE_LIST);
  for await (const { at, row, problem } of priceRowsIn(answer, requiredColumns(FlavorPrice))) {
    if ((labelIn(row, 'region_code') ?? region) !== region) continue;
    const read: Row<FlavorPrice> = problem === undefined ? readRow(FlavorPrice, row) : { reason: problem };
    const name = labelIn(row, 'name');
    if (name === undefined)
      nameless.push(rejectedRow(`prices ${at}`, `prices ${at}: ${read.reason}`, { regionCode: region }));
    else listed.set(name, [...(listed.get(name) ?? []), { at, read }]);
  }
  return { listed, nameless };
}

function offer(row: unknown, regionCode: string, prices: ReadonlyMap<string, ListedPrice[]>): CatalogueItem {
  const flavor = parseRow(Flavor, row);
  const { name, vcpus: cpu } = flavor;
  const [first, ...others] = prices.get(name) ?? [];
  if (first === undefined)
    return unusable('the price list has no row for it; add one, with excluded if it is not for sale');
  if (others.length > 0) {
    const places = [first, ...others].map(({ at }) => at).join(' and ');
    return unusable(`the price list has it on ${places}; keep one of these rows`);
  }
  const listed = valueIn(first.read, `prices ${first.at}: `);
  const price = { amount: listed.price, per: listed.per, currency: listed.currency };
  const machine = { name, cpu, ...memory(flavor.ram, 'MiB'), price, facts: factsOf(flavor) };
  return offerItem({ regionCode, ...machine }, exclusion(flavor, listed));
}

/** No field states whether a disk is local. Source: https://docs.openstack.org/nova/latest/configuration/extra-specs.html. */
function factsOf({ extra_specs: specs = {} }: Flavor) {
  const required = Object.keys(specs).filter(
    (spec) => spec.startsWith(ARCHITECTURE) && specs[spec] === 'required',
  );
  const [spec] = required;
  const isOne = required.length === 1 && spec !== undefined;
  return {
    cpuKind: cpuKind.parse(specs['hw:cpu_policy']),
    architecture: isOne ? architectureNamed(spec.slice(ARCHITECTURE.length)) : undefined,
  };
}

function exclusion(flavor: Flavor, listed: FlavorPrice) {
  if (listed.excluded != null) return listed.excluded;
  if (Object.keys(flavor.extra_specs ?? {}).some((spec) => DEVICE.test(spec))) return 'accelerated';
  const isHidden =
    flavor['OS-FLV-DISABLED:disabled'] === true || flavor['os-flavor-access:is_public'] === false;
  return isHidden ? 'unavailable' : undefined;
}

/** Yields every flavor. Each page is read at the source's URL: the cloud's links may have another address. */
async function* flavors(http: SourceHttp): AsyncGenerator<unknown> {
  const path = /\/v2(\.\d+)?(\/[^/]+)?\/*$/.test(http.base.pathname) ? '/flavors/detail' : FLAVORS;
  const pages = pagesOf(
    path,
    {},
    (query: Readonly<Record<string, string>>) =>
      http.json(path, FlavorPage, { query, headers: MICROVERSION }),
    ({ data, url }) => {
      const next = data.flavors_links?.find(({ rel }) => rel === 'next')?.href;
      if (next === undefined) return undefined;
      const query = URL.canParse(next, url.href) ? new URL(next, url).searchParams : new URLSearchParams();
      if (query.has('marker')) return Object.fromEntries(query);
      throw badAnswer(`${path}: the next href of flavors_links must have a marker`);
    },
  );
  let seen = 0;
  for await (const { data } of pages) {
    yield* data.flavors;
    seen += data.flavors.length;
  }
  // The last page may be empty: a full one always has a next.
  if (seen === 0) throw nothingListed(path);
}
