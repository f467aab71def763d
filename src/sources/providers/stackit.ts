import { z } from 'zod';
import { memory } from '../../domain/machine.ts';
import { isPositive } from '../../domain/prices/price.ts';
import { amount, count, label, oneOf, quantity, someRows } from '../schema/fields.ts';
import { offerItem, orRejected, rejectedRow } from '../schema/items.ts';
import { type FoundPrice, RegionPrices } from '../schema/region-prices.ts';
import { labelIn, parseRow, readRow, unusable } from '../schema/rows.ts';
import type { CatalogueAdapter, CatalogueItem } from '../source.ts';

const SERVICES = '/v1/skus';

const Services = z.object({ services: someRows });

const yesOrNo = oneOf(['Yes', 'No']);
/** A service that is deprecated, or not in the public list, is not for everyone. */
const Service = z.object({
  product: label,
  name: label,
  region: label,
  deprecated: yesOrNo,
  priceListVisibility: yesOrNo,
  generalProductGroup: z.unknown().optional(),
  attributes: z.object({
    /** True for several availability zones of the region at once. */
    metro: z.boolean().nullish(),
    /** Absent or null without a licence. */
    os: z.string().nullish(),
    type: z.unknown().optional(),
  }),
});
type Service = z.infer<typeof Service>;

const hourlyPrice = {
  price: amount,
  currency: z.literal('€', { error: 'must be €' }),
  unitBilling: z.literal('per hour', { error: 'must be per hour' }),
};
const Priced = z.object({ ...hourlyPrice, unitBilling: label });
const Server = z.object({
  ...hourlyPrice,
  attributes: z.object({
    flavor: label,
    vCPU: count,
    ram: quantity,
    hardware: z.unknown().optional(),
    cpuOverprovisioning: z.unknown().optional(),
  }),
});
/** The price is that of all nodes. */
const Database = z.object({
  ...hourlyPrice,
  attributes: z.object({ vCPU: count, ram: quantity, nodes: count }),
});

/** Other services, which have no place in the catalogue, may have no region and no price by the hour. */
const PRODUCTS: ReadonlySet<string> = new Set([
  'Server',
  'PostgreSQL Flex',
  'Block Storage',
  'Public IP Address',
]);

const CAPACITY = { item: 'block_storage', name: 'capacity', unit: 'GB', per: 'hour' } as const;
const ADDRESS = { item: 'ipv4', name: 'ipv4', unit: 'address', per: 'hour' } as const;
/** By `cpuOverprovisioning`. */
const KINDS = { true: 'shared', false: 'dedicated' } as const;

/** Other names of hardware are unknown architectures. */
const X86: ReadonlySet<unknown> = new Set(['Intel', 'AMD']);
/** `n1.14d.g1` is a flavor with a GPU. */
const ACCELERATED = /\.g\d+$/;

/**
 * Source: the public price API, as https://github.com/Cyclenerd/stackit-pricing reads it, and the flavors in
 * https://docs.stackit.cloud/products/compute-engine/server/basics/machine-types/.
 */
export const adapter: CatalogueAdapter = {
  id: 'stackit',
  provider: { id: 14, name: 'STACKIT' },
  baseUrl: 'https://pim.api.stackit.cloud',
  endpoints: [SERVICES],
  credentials: 'none',
  memoryUnit: 'GB',
  currency: 'EUR',
  facts: ['architecture', 'cpuKind'],
  schedule: '42 */6 * * *',
  notes:
    'One answer lists the services of all regions with their prices by the hour, without VAT. Services that are deprecated or not in the ' +
    'public list are skipped, and so are servers with a licensed operating system. A server that STACKIT places in several availability zones ' +
    'at once (metro) has its own price, so these zones are one more region: `eu01-m`. The list also states the capacity of block ' +
    'storage and public IPv4 addresses. The price of a GB does not contain the performance class of a disk, an amount by the hour for each disk. ' +
    'Database plans are those of PostgreSQL Flex at the price of the whole service, without its storage. The ' +
    'adapter was written with 20 recorded services of about 1,070: they show no server with a GPU or a licence, no traffic, and no other ' +
    'database whose nodes and size the list states.',

  async *catalogue({ http }) {
    const { services } = (await http.json(SERVICES, Services)).data;
    const prices = new RegionPrices();
    const regions = new Set<string>();
    const offers: CatalogueItem[] = [];
    for (const [index, row] of services.entries()) {
      if (!PRODUCTS.has(labelIn(row, 'product') ?? 'Server')) continue;
      const { value: service, reason } = readRow(Service, row);
      if (service === undefined) {
        const key = labelIn(row, 'name') ?? `service ${index + 1}`;
        offers.push(rejectedRow(key, reason, { name: flavorIn(row) }));
      } else if (service.deprecated === 'No' && service.priceListVisibility === 'Yes') {
        const regionCode = service.attributes.metro === true ? `${service.region}-m` : service.region;
        regions.add(regionCode);
        if (service.product !== 'Server') addPrice(prices, service, regionCode, row);
        else if (!service.attributes.os) offers.push(serverOf(service, regionCode, row));
      }
    }
    for (const code of regions) yield { kind: 'region', code, name: code.toUpperCase() };
    yield* offers;
    yield* prices.items();
  },
};

const flavorIn = (row: unknown): string | undefined => {
  const { attributes } = z.object({ attributes: z.unknown().optional() }).safeParse(row).data ?? {};
  return labelIn(attributes, 'flavor');
};

function serverOf(service: Service, regionCode: string, row: unknown): CatalogueItem {
  return orRejected(service.name, { name: flavorIn(row), regionCode }, () => {
    const { price: perHour, attributes } = parseRow(Server, row);
    const { flavor: name, vCPU: cpu, ram, hardware, cpuOverprovisioning } = attributes;
    const price = { amount: perHour, per: 'hour', currency: adapter.currency } as const;
    const facts = {
      architecture: X86.has(hardware) ? 'x86_64' : undefined,
      cpuKind: typeof cpuOverprovisioning === 'boolean' ? KINDS[`${cpuOverprovisioning}`] : undefined,
    };
    const machine = { regionCode, name, cpu, ...memory(ram, adapter.memoryUnit), price, facts };
    return offerItem(
      machine,
      ACCELERATED.test(name) || /gpu/i.test(service.name) ? 'accelerated' : undefined,
    );
  });
}

/** Adds the price of a GB of block storage, of an address, or of a database. */
function addPrice(prices: RegionPrices, service: Service, regionCode: string, row: unknown): void {
  const { product, name, generalProductGroup: group, attributes } = service;
  const currency = adapter.currency;
  if (product === 'PostgreSQL Flex') {
    const plan = prices.usable('database_plan', name, () => parseRow(Database, row));
    if (!plan) return;
    const { nodes, vCPU: cpu, ram } = plan.attributes;
    prices.addPlan(regionCode, {
      engine: 'postgresql',
      // `PostgreSQL-Flex-4.8-Replica-EU01` without its region.
      name: name.replace(new RegExp(`-${service.region}$`, 'i'), ''),
      ...{ nodes, cpu, ...memory(ram, adapter.memoryUnit), storage: 0 },
      price: { amount: plan.price, per: 'hour', currency },
    });
  } else if (product === 'Block Storage' && group === product && attributes.type === 'capacity')
    addRegionPrice(prices, row, regionCode, { ...CAPACITY, currency });
  else if (product === 'Public IP Address' && /\(IPv4\)/.test(name))
    addRegionPrice(prices, row, regionCode, { ...ADDRESS, currency });
}

function addRegionPrice(
  prices: RegionPrices,
  row: unknown,
  regionCode: string,
  price: Omit<FoundPrice, 'tiers'>,
): void {
  const found = prices.usable(price.item, regionCode, () => {
    const { price: perHour, unitBilling } = parseRow(Priced, row);
    const unit = price.unit === 'GB' ? 'per GB/hour' : 'per hour';
    if (unitBilling !== unit) return unusable(`unitBilling must be ${unit}; it is ${unitBilling}`);
    return isPositive(perHour) ? perHour : unusable('price must be above 0; it is 0');
  });
  if (found !== undefined) prices.add(regionCode, { ...price, amount: found });
}
