import { z } from 'zod';
import { memory } from '../../domain/machine.ts';
import { isPositive } from '../../domain/prices/price.ts';
import { siblingHost } from '../http/address.ts';
import { amount, count, countOrNone, label, NOTHING_LISTED, quantity, someRows } from '../schema/fields.ts';
import { offerItem, rejectedOffer, rejectedRow, usableRegions } from '../schema/items.ts';
import { type FoundPrice, RegionPrices } from '../schema/region-prices.ts';
import { parseRow, readRow, rowOf, unusable } from '../schema/rows.ts';
import type { CatalogueAdapter, CatalogueItem } from '../source.ts';

const ZONES = '/v2/zone';
const TYPES = '/v2/instance-type';
const PRICES = '/api/pricing/opencompute';

const Zones = z.object({ zones: someRows });
const Types = z.object({ 'instance-types': someRows });
/** Currency → charged item → amount per hour. */
const Prices = z.object({
  eur: z.looseObject({}).refine((eur) => Object.keys(eur).length > 0, { error: NOTHING_LISTED }),
});

/** The names of prices in the list. A GiB of a disk costs its price for an hour, an address too, and a GB of outgoing traffic once. */
const REGION_PRICES = [
  { item: 'block_storage', name: 'volume', unit: 'GiB', per: 'hour' },
  { item: 'block_storage', name: 'volume_data', unit: 'GiB', per: 'hour' },
  { item: 'ipv4', name: 'eip_address', unit: 'address', per: 'hour' },
  { item: 'traffic_out', name: 'traffic', unit: 'GB', per: undefined },
] as const satisfies readonly Omit<FoundPrice, 'currency' | 'tiers'>[];

const Zone = z.object({ name: label }).transform(({ name }) => ({ code: name, name }));
const Named = z.object({ family: label, size: label });
const InstanceType = z.object({
  cpus: count,
  memory: quantity,
  gpus: countOrNone.nullish(),
  /** False if an account needs a permission. */
  authorized: z.boolean().nullish(),
  zones: z.array(label, { error: 'must be a list of zones' }),
});
type InstanceType = z.infer<typeof InstanceType>;

/**
 * Source: https://openapi-v2.exoscale.com/ (list-zones, list-instance-types), and the price list of
 * https://www.exoscale.com/pricing/. There, `running_large` is standard.large, `running_cpu_extra_large` cpu.extra-large,
 * `running_gpu3_small` gpu3.small, and `running_gpu_a5000_small` gpua5000.small.
 */
export const adapter: CatalogueAdapter = {
  id: 'exoscale',
  provider: { id: 12, name: 'Exoscale' },
  baseUrl: 'https://api-ch-gva-2.exoscale.com',
  endpoints: [ZONES, TYPES, PRICES],
  credentials: 'exo2-hmac-sha256',
  memoryUnit: 'bytes',
  currency: 'EUR',
  schedule: '27 */6 * * *',
  notes:
    'Zones and types are read with an API key, which signs each request and needs a role that allows ' +
    '`compute: list-zones, list-instance-types`; one zone lists all of them. Prices are those of the public list at ' +
    `\`https://portal.exoscale.com${PRICES}\`, in EUR, the same in all zones. They exclude the disk, which every ` +
    'machine has and Exoscale charges by size: `volume`, the default of storage prices. The list also states outgoing traffic and elastic ' +
    'IPv4 addresses. It has the same numbers for euros, francs and dollars, so Fleetbook reads those of euros. It does not state how much ' +
    'traffic a machine includes. If the URL is not Exoscale’s, prices are read at that URL too.',

  async *catalogue({ http }) {
    const prices = siblingHost(http, {
      below: /^(|.*[^/])\/*$/,
      example: adapter.baseUrl,
      first: /\.exoscale\.com$/,
      second: 'https://portal.exoscale.com',
      credentials: 'none',
    });
    const { zones } = (await http.json(ZONES, Zones)).data;
    const regions = yield* usableRegions(zones, Zone, 'name', 'zone');
    const known = new Set(regions.map(({ code }) => code));
    const types = (await http.json(TYPES, Types)).data['instance-types'];
    const { eur } = (await prices.json(PRICES, Prices)).data;
    for (const [index, row] of types.entries()) {
      const { value: type, reason } = readRow(Named, row);
      if (type === undefined) yield rejectedRow(`instance type ${index + 1}`, reason);
      else yield* offers(type, row, known, eur);
    }
    const regionPrices = new RegionPrices();
    for (const price of REGION_PRICES)
      addPrice(
        regionPrices,
        price,
        regions.map(({ code }) => code),
        eur,
      );
    yield* regionPrices.items(['volume']);
  },
};

/** Zones have the same prices. */
function addPrice(
  prices: RegionPrices,
  price: (typeof REGION_PRICES)[number],
  zones: readonly string[],
  eur: Readonly<Record<string, unknown>>,
): void {
  const { name } = price;
  const stated = prices.usable(price.item, `eur.${name}`, () => {
    const found = parseRow(amount, eur[name], ['eur', name]);
    return isPositive(found) ? found : unusable(`eur.${name} must be above 0; it is 0`);
  });
  if (stated === undefined) return;
  for (const zone of zones) prices.add(zone, { ...price, currency: adapter.currency, amount: stated });
}

function* offers(
  { family, size }: z.infer<typeof Named>,
  row: unknown,
  zones: ReadonlySet<string>,
  prices: Readonly<Record<string, unknown>>,
): Generator<CatalogueItem> {
  const name = `${family}.${size}`;
  const plain = chargedAs(family, size);
  const separated = chargedAs(family.replace(/^gpu(?=[a-z0-9])/, 'gpu_'), size);
  const charged = Object.hasOwn(prices, plain) || !Object.hasOwn(prices, separated) ? plain : separated;
  const { value: found, reason } = rowOf(() => {
    return { type: parseRow(InstanceType, row), price: parseRow(amount, prices[charged], ['eur', charged]) };
  });
  if (found === undefined) {
    yield rejectedRow(name, reason, { name });
    return;
  }
  const { type } = found;
  const price = { amount: found.price, per: 'hour', currency: adapter.currency } as const;
  const machine = { name, cpu: type.cpus, ...memory(type.memory, adapter.memoryUnit), price };
  for (const regionCode of type.zones) {
    if (zones.has(regionCode)) yield offerItem({ regionCode, ...machine }, exclusion(family, type));
    else yield rejectedOffer(name, regionCode, `zones holds ${regionCode}, which ${ZONES} does not list`);
  }
}

function chargedAs(family: string, size: string): string {
  return ['running', ...(family === 'standard' ? [] : [family]), size].join('_').replaceAll('-', '_');
}

function exclusion(family: string, { gpus, authorized }: InstanceType) {
  if (gpus || family.startsWith('gpu')) return 'accelerated';
  return authorized === false ? 'unavailable' : undefined;
}
