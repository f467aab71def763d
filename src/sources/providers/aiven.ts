import { z } from 'zod';
import { engineNamed } from '../../domain/engine.ts';
import { memory } from '../../domain/machine.ts';
import { entriesOf } from '../http/json-entries.ts';
import { nothingListed } from '../http/lists.ts';
import { diskIn } from '../schema/facts.ts';
import { amount, count, label, listedNames, quantity, someRows } from '../schema/fields.ts';
import { usableRegions } from '../schema/items.ts';
import { RegionPrices } from '../schema/region-prices.ts';
import { labelIn, parseRow } from '../schema/rows.ts';
import type { CatalogueAdapter } from '../source.ts';

const CLOUDS = '/v1/clouds';
const SERVICE_TYPES = '/v1/service_types';

/** The service types that are databases, as in the control plane of Aiven. Others are queues, dashboards and jobs. */
const DATABASES = listedNames(
  'alloydbomni,cassandra,clickhouse,dragonfly,influxdb,m3db,mysql,opensearch,pg,redis,valkey',
);

/**
 * Whether each node has the disk that the plan states. The nodes of "a clustered service such as Apache Cassandra" share it, else "each
 * node receives the total": https://aiven.io/docs/platform/howto/add-storage-space. A type that is missing here is unknown.
 */
const HAS_WHOLE_DISK: ReadonlyMap<string, boolean> = new Map([
  ['alloydbomni', true],
  ['mysql', true],
  ['pg', true],
  ['cassandra', false],
  ['m3db', false],
  ['opensearch', false],
]);

/** `free-1-5gb`: it costs nothing, so it is no plan with a price. */
const FREE = /^free(-|$)/;

/** Characters and values of one service type. The whole list has tens of megabytes. */
const LARGEST_TYPE = 32 * 1024 * 1024;

/** The description is optional in Aiven's client: `CloudOut` in aiven/go-client-codegen. */
const Cloud = z
  .object({ cloud_name: label, cloud_description: label.nullish() })
  .transform(({ cloud_name: code, cloud_description: name }) => ({ code, name: name ?? code }));

const Type = z.object({ service_plans: z.array(z.unknown()) });

const Plan = z.object({
  service_plan: label,
  node_count: count,
  /** By cloud. */
  regions: z.record(z.string(), z.unknown()),
});

/** A plan in one cloud: the price for an hour of all nodes, and the shape of one node. */
const Placed = z.object({
  price_usd: amount,
  node_cpu_count: count.optional().catch(undefined),
  /** "MB" that are MiB: Aiven's client divides them by 1024. */
  node_memory_mb: quantity.optional().catch(undefined),
  disk_space_mb: diskIn('MiB'),
});
type Placed = z.infer<typeof Placed>;

/**
 * Source: https://api.aiven.io/doc/, `ListPublicServiceTypes` and `ListClouds`. Source of the units and of the price for all nodes:
 * `service plans` in https://github.com/aiven/aiven-client.
 */
export const adapter: CatalogueAdapter = {
  id: 'aiven',
  provider: { id: 13, name: 'Aiven' },
  baseUrl: 'https://api.aiven.io',
  endpoints: [CLOUDS, SERVICE_TYPES],
  credentials: 'none',
  large: true,
  memoryUnit: 'MiB',
  currency: 'USD',
  schedule: '32 */6 * * *',
  notes:
    'Aiven sells managed databases in the clouds of others, and no machines: the source has plans of databases alone. A region is a ' +
    'cloud of Aiven, such as `aws-eu-west-1`. `/v1/providers` and the operations about machines omit the provider, and `/v1/databases` has ' +
    `it. The engines are ${[...DATABASES].map(engineNamed).join(', ')}. Queues, dashboards and free plans are not listed. The list of plans ` +
    'has tens of megabytes: Fleetbook reads it as a stream, one service type after the other.',

  async *catalogue({ http }) {
    const { clouds } = (await http.json(CLOUDS, z.object({ clouds: someRows }))).data;
    const listed = yield* usableRegions(clouds, Cloud, 'cloud_name', 'cloud');
    const codes = new Set(listed.map(({ code }) => code));
    const prices = new RegionPrices();
    const { body, url } = await http.stream(SERVICE_TYPES);
    const types = entriesOf(body, {
      maps: ['service_types'],
      isWanted: (_, type) => DATABASES.has(type),
      where: url.origin + url.pathname,
      largest: LARGEST_TYPE,
    });
    let plans = 0;
    for await (const { key, value } of types) {
      const type = prices.usable('database_plan', key, () => parseRow(Type, value, [key]));
      for (const row of type?.service_plans ?? []) {
        plans += 1;
        addPlan(prices, key, row, codes);
      }
      if (type === undefined) plans += 1;
    }
    if (plans === 0) throw nothingListed(SERVICE_TYPES);
    yield* prices.items();
  },
};

function addPlan(prices: RegionPrices, type: string, row: unknown, clouds: ReadonlySet<string>): void {
  const key = `${type}/${labelIn(row, 'service_plan') ?? ''}`;
  const plan = prices.usable('database_plan', key, () => parseRow(Plan, row));
  if (plan === undefined) return;
  const { service_plan: name, node_count: nodes } = plan;
  for (const [cloud, there] of Object.entries(plan.regions)) {
    const placed = prices.usable('database_plan', key, () => parseRow(Placed, there, ['regions', cloud]));
    if (placed === undefined || (placed.price_usd === '0' && FREE.test(name))) continue;
    if (!clouds.has(cloud)) {
      prices.leaveOut('database_plan', key, `its cloud ${cloud} is not in ${CLOUDS}`);
      continue;
    }
    const { price_usd, node_cpu_count: cpu = null, node_memory_mb: size } = placed;
    prices.addPlan(cloud, {
      ...{ engine: engineNamed(type), name, nodes, cpu },
      ...(size === undefined ? { ram: null, ramUnit: null } : memory(size, adapter.memoryUnit)),
      storage: storageOf(type, nodes, placed),
      price: { amount: price_usd, per: 'hour', currency: adapter.currency },
    });
  }
}

/** Returns GB of one node; null if the list does not state them. */
function storageOf(type: string, nodes: number, { disk_space_mb: disk }: Placed): number | null {
  const isWhole = nodes === 1 || HAS_WHOLE_DISK.get(type);
  if (!disk || isWhole === undefined) return null;
  return isWhole ? disk : Math.round((disk / nodes) * 1000) / 1000;
}
