import { z } from 'zod';
import type { DescribedCluster } from '../../domain/cluster.ts';
import { instant } from '../cluster-fields.ts';
import { incompleteList } from '../http/listing.ts';
import { anotherPage, pagesOf } from '../http/pages.ts';
import { count, countOrNone, label } from '../schema/fields.ts';
import { listedNames, nameList } from '../schema/name-list.ts';
import { labelIn, readRow, rejectedRow } from '../schema/rows.ts';
import type { ClusterAdapter, ClusterItem, SourceHttp } from '../source.ts';

const DATABASES = '/v2/databases';

/** The largest page of the API's lists. */
const PER_PAGE = 200;

/** The engines that are databases; `kafka` is a queue. */
const ENGINES = 'mongodb,mysql,opensearch,pg,redis,valkey';

/** The states that the contract has a word for. A cluster that is resized or migrated is not said to be up or down. */
const STATUS: ReadonlyMap<string, string> = new Map([
  ['creating', 'Creating'],
  ['online', 'Active'],
]);

const Options = z.strictObject({
  engines: nameList
    .default(ENGINES)
    .describe(`the engines whose clusters are read, separated by commas; \`${ENGINES}\` when absent`),
});

/**
 * The API's own description gives this list no pages, its general part gives every list some. Those that come are
 * followed.
 */
const Page = z.object({
  databases: z.array(z.unknown()),
  links: z.object({ pages: z.object({ next: z.string().nullish() }).nullish() }).nullish(),
  meta: z.object({ total: countOrNone }).nullish(),
});

const Engine = z.object({ engine: label });

/**
 * `database_cluster` of the vendor's OpenAPI description,
 * https://github.com/digitalocean/openapi/blob/main/specification/resources/databases/models/database_cluster.yml.
 */
const Database = z.object({
  id: label,
  name: label,
  status: label,
  num_nodes: count,
  /** A slug such as `db-s-2vcpu-4gb`. */
  size: label,
  region: label,
  created_at: instant,
  project_id: label.nullish(),
  storage_size_mib: countOrNone.nullish(),
});
type Database = z.infer<typeof Database>;

/** The databases that DigitalOcean runs for its customers. */
export const adapter: ClusterAdapter = {
  id: 'digitalocean',
  options: Options,
  baseUrl: 'https://api.digitalocean.com',
  endpoints: [DATABASES],
  readsFiles: false,
  credentials: 'bearer',
  schedule: '4-59/5 * * * *',
  notes: `The token needs the scope \`database:read\` alone; it sees the databases of the one team that it belongs to. The project of
a database is its tenant, by its id, for the source's \`organizations\`. Without \`database:view_credentials\` the answers
hold no password; with it they do, and none is kept or logged. An entry that publishes the databases of one team:

\`\`\`json
{
  "clusters": [
    {
      "id": "databases",
      "adapter": "digitalocean",
      "tokenEnv": "DIGITALOCEAN_DATABASES_TOKEN",
      "organization": "acme",
      "diskTypes": {
        "*": { "name": "storage", "price": { "amount": "0.215", "per": "month", "currency": "USD" }, "unit": "Binary" }
      }
    }
  ]
}
\`\`\`

| of DigitalOcean | becomes |
|---|---|
| \`id\` | what identifies the cluster |
| \`status\` | \`online\` is \`Active\`, \`creating\` is \`Creating\`; others, such as \`resizing\`, \`migrating\` and \`forking\`, stay as they are |
| \`num_nodes\` | the replicas, of 1 shard: primary and standby nodes. Read-only nodes, which DigitalOcean lists elsewhere, are not counted |
| \`size\` | the machine's name, and its shape, which only the name states: \`db-s-2vcpu-4gb\` has 2 CPUs and 4 GiB. A size of another form is a name alone: say its shape in the source's \`machines\` |
| \`region\` | the region's code, of the provider DigitalOcean |
| \`storage_size_mib\` | one disk of so many MiB, in GiB, of which the API says no more: name, unit and price are those of \`*\` in the source's \`diskTypes\`. Where it is missing, nothing is said of disks |
| (nothing) | who made it: the source's \`defaults\` may say a \`user\` |`,

  async *clusters({ http, options }) {
    const engines = listedNames(Options.parse(options ?? {}).engines);
    let index = 0;
    for await (const row of rowsOf(http)) {
      index += 1;
      const item = itemOf(row, index, engines);
      if (item !== undefined) yield item;
    }
  },
};

async function* rowsOf(http: SourceHttp): AsyncGenerator<unknown, void> {
  let fetched = 0;
  let advertised: number | undefined;
  const pages = pagesOf(
    DATABASES,
    1,
    (page) => http.json(DATABASES, Page, { query: { page, per_page: PER_PAGE } }),
    ({ data: { links } }, page) => {
      const next = links?.pages?.next;
      if (next == null) return undefined;
      const number = URL.canParse(next, http.base.href) && new URL(next, http.base).searchParams.get('page');
      if (number === String(page + 1)) return page + 1;
      throw anotherPage(DATABASES, page, 'links.pages.next does not name the page after it');
    },
  );
  for await (const { data } of pages) {
    fetched += data.databases.length;
    advertised = data.meta?.total ?? advertised;
    yield* data.databases;
  }
  if (advertised !== undefined && fetched < advertised) throw incompleteList(DATABASES, fetched, advertised);
}

/** Undefined for a database that is no cluster. */
function itemOf(row: unknown, index: number, engines: ReadonlySet<string>): ClusterItem | undefined {
  const key = labelIn(row, 'id') ?? labelIn(row, 'name') ?? `database ${index}`;
  const engine = readRow(Engine, row);
  if (engine.value === undefined) return rejectedRow(key, engine.reason, {});
  if (!engines.has(engine.value.engine)) return undefined;
  const { value, reason } = readRow(Database, row);
  if (value === undefined) return rejectedRow(key, reason, {});
  return { kind: 'cluster', cluster: described(value) };
}

function described(database: Database): DescribedCluster {
  const { id, name, status, num_nodes, size, region, created_at, project_id, storage_size_mib } = database;
  return {
    ...(project_id == null ? {} : { tenant: project_id }),
    key: id,
    name,
    provider: 'DigitalOcean',
    region: { code: region },
    status: STATUS.get(status) ?? status,
    shards: 1,
    replicas: num_nodes,
    machine: machineOf(size),
    ...disksOf(storage_size_mib),
    createdAt: created_at,
  };
}

/** "gb" are GiB, as in the sizes of Droplets: those have a memory of 4096 MiB for "4gb". */
function machineOf(size: string): NonNullable<DescribedCluster['machine']> {
  const [, cpu, ram] = /(?:^|-)([1-9]\d{0,3})vcpu-([1-9]\d{0,4})gb(?:-|$)/.exec(size) ?? [];
  if (cpu === undefined || ram === undefined) return { name: size };
  return { name: size, cpu: Number(cpu), ram: Number(ram), ramUnit: 'Binary' };
}

function disksOf(mib: number | null | undefined): Pick<DescribedCluster, 'disks'> {
  if (mib == null) return {};
  return { disks: mib === 0 ? [] : [{ type: {}, size: mib / 1024, unit: 'GiB' }] };
}
