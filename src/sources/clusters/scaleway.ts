import { z } from 'zod';
import type { DescribedCluster } from '../../domain/cluster.ts';
import { clusterItem } from '../cluster-fields.ts';
import { countedRows } from '../http/lists.ts';
import { listedNames, nameList } from '../schema/fields.ts';
import { labelIn, parseRow, type Row, readRow, valueIn } from '../schema/rows.ts';
import type { ClusterAdapter, ClusterItem, SourceHttp } from '../source.ts';
import { type Instance, type NodeType, NodeTypePage, PRODUCTS, type Product } from './scaleway/products.ts';

const LARGEST_PAGE = 100;

/** The states with a word in the contract, which are the same in all products. */
const STATUS: ReadonlyMap<string, string> = new Map([
  ['provisioning', 'Creating'],
  ['initializing', 'Creating'],
  ['ready', 'Active'],
  ['autohealing', 'Degraded'],
  ['suspended', 'Stopped'],
  ['deleting', 'Terminating'],
]);

const NOWHERE = 'none';

/** The default places are those in Scaleway's client. */
const places = (known: string, what: string) =>
  nameList
    .default(known)
    .describe(`${what}, separated by commas, or \`${NOWHERE}\`; \`${known}\` when absent`);

const Options = z.strictObject({
  rdb: places('fr-par,nl-ams,pl-waw', 'the regions with databases for PostgreSQL and MySQL'),
  mongodb: places('fr-par', 'the regions with databases for MongoDB'),
  redis: places(
    'fr-par-1,fr-par-2,nl-ams-1,nl-ams-2,pl-waw-1,pl-waw-2',
    'the zones with databases for Redis',
  ),
});

/** Source: https://www.scaleway.com/en/developers/api/, and scaleway-sdk-go. */
export const adapter: ClusterAdapter = {
  id: 'scaleway',
  options: Options,
  baseUrl: 'https://api.scaleway.com',
  endpoints: PRODUCTS.flatMap(({ instances, nodeTypes }) => [instances, nodeTypes]),
  readsFiles: false,
  credentials: 'x-auth-token',
  schedule: '2-57/5 * * * *',
  notes: `The token is the secret key of an API key whose policy may read these databases (\`RelationalDatabasesReadOnly\` for PostgreSQL
and MySQL). The id of a project is the tenant, for the source's \`organizations\`. A product, region or zone that cannot be
read fails the whole run: exclude it by the options, which may also name new places. The example reads only PostgreSQL
and MySQL in Paris.

| of Scaleway | becomes |
|---|---|
| \`id\` | the cluster's key |
| \`status\` | \`ready\` is \`Active\`, \`provisioning\` and \`initializing\` are \`Creating\`, \`autohealing\` is \`Degraded\`, \`suspended\` is \`Stopped\`, \`deleting\` is \`Terminating\`; other states, such as \`locked\` and \`disk_full\`, are published unchanged |
| \`is_ha_cluster\`, \`read_replicas\` (PostgreSQL, MySQL) | the replicas, of 1 shard: 2 with high availability, else 1, and each read replica |
| \`node_amount\` (MongoDB) | the replicas, of 1 shard |
| \`cluster_size\` (Redis) | 1 and 2 are the replicas of 1 shard. 3 or more are as many shards with 1 replica each, since Redis splits the keys. The copies that nodes keep of each other's keys are not counted |
| \`node_type\` | the machine's name. The product's list of node types states its shape, in GB, or in GiB if its memory is no multiple of 10^9 bytes; the source's \`machines\` must give the shape of a type that is not listed |
| \`volume\` | one disk of that many GB with the volume's type, such as \`sbs_5k\`; unit and price come from that name in the source's \`diskTypes\`. Redis has none |
| \`region\`, \`zone\` | the code of a region of the provider Scaleway. Its machines are sold in zones (\`fr-par-1\`), while PostgreSQL, MySQL and MongoDB are in regions (\`fr-par\`): the source's \`regions\` may name a zone instead |
| \`engine\` (PostgreSQL, MySQL) | engine and version: \`PostgreSQL-17\` |
| \`version\` (MongoDB, Redis) | the version; the engine is \`mongodb\` or \`redis\` |
| (nothing) | the creator: the source's \`defaults\` may name a \`user\` |`,
  example: {
    options: { rdb: 'fr-par', mongodb: 'none', redis: 'none' },
    organizations: { '105a0b1c-4f0e-4a53-9d55-8a1c7d9e4b10': 'acme' },
    regions: { 'fr-par': { code: 'fr-par-1' } },
    diskTypes: {
      sbs_5k: { price: { amount: '0.1', per: 'month', currency: 'EUR' }, unit: 'Decimal' },
      '*': { price: { amount: '0.13', per: 'month', currency: 'EUR' }, unit: 'Decimal' },
    },
  },

  async *clusters({ http, options }) {
    const read = Options.parse(options ?? {});
    for (const product of PRODUCTS) {
      for (const place of listedNames(read[product.id])) {
        if (place !== NOWHERE) yield* clustersIn(http, product, place);
      }
    }
  },
};

async function* clustersIn(http: SourceHttp, product: Product, place: string): AsyncGenerator<ClusterItem> {
  const rows = await Array.fromAsync(rowsOf(http, at(product.instances, place), product.InstancePage, {}));
  if (rows.length === 0) return;
  const types = await nodeTypes(http, product, place);
  for (const [index, row] of rows.entries()) {
    const key = labelIn(row, 'id', 'name') ?? `${product.id} ${index + 1} of ${place}`;
    yield clusterItem(key, () => {
      const instance = parseRow(product.Instance, row);
      return described(instance, types.get(instance.node_type.toLowerCase()));
    });
  }
}

/** Returns the types by name in lower case: instances name `db-dev-s` what the list calls `DB-DEV-S`. */
async function nodeTypes(
  http: SourceHttp,
  product: Product,
  place: string,
): Promise<ReadonlyMap<string, Row<NodeType>>> {
  const types = new Map<string, Row<NodeType>>();
  for await (const row of rowsOf(http, at(product.nodeTypes, place), NodeTypePage, product.allTypes)) {
    const name = labelIn(row, 'name');
    if (name !== undefined) types.set(name.toLowerCase(), readRow(product.NodeType, row));
  }
  return types;
}

function rowsOf(
  http: SourceHttp,
  path: string,
  schema: Product['InstancePage'],
  query: Readonly<Record<string, string>>,
): AsyncGenerator<unknown, void> {
  return countedRows(path, LARGEST_PAGE, async ({ number }) => {
    const page = { ...query, page: number, page_size: LARGEST_PAGE };
    return (await http.json(path, schema, { query: page })).data;
  });
}

function at(path: string, place: string): string {
  return path.replace(/\{(region|zone)\}/, place);
}

function described(instance: Instance, listed: Row<NodeType> | undefined): DescribedCluster {
  const { name, status, node_type: type, shards, replicas, disks, software } = instance;
  const shape = listed && valueIn(listed, `node_type is ${type}, which is unusable in the list of types: `);
  return {
    tenant: instance.project_id,
    key: instance.id,
    name,
    provider: 'Scaleway',
    region: { code: instance.place },
    status: STATUS.get(status) ?? status,
    shards,
    replicas,
    machine: { name: type, ...shape },
    disks,
    software,
    createdAt: instance.created_at,
  };
}
