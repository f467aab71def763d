import { z } from 'zod';
import type { DescribedCluster } from '../../domain/cluster.ts';
import { disksOfGib, instant, itemOfType, softwareEnd, softwareOf, softwareText } from '../cluster-fields.ts';
import { anotherPage, incompleteList, pagesByNumber } from '../http/lists.ts';
import { count, countOrNone, label, listedNames, nameList } from '../schema/fields.ts';
import { labelIn, parseRow } from '../schema/rows.ts';
import type { ClusterAdapter, SourceHttp } from '../source.ts';

const DATABASES = '/v2/databases';

const LARGEST_PAGE = 200;

/** The engines that are databases; `kafka` is a queue. The advanced ones are the Advanced Edition of MySQL and PostgreSQL. */
const ENGINES = 'advanced_mysql,advanced_pg,mongodb,mysql,opensearch,pg,redis,valkey';

/** The states with a word in the contract. A resized or migrated cluster may be up or down. */
const STATUS: ReadonlyMap<string, string> = new Map([
  ['creating', 'Creating'],
  ['online', 'Active'],
]);

const Options = z.strictObject({
  engines: nameList
    .default(ENGINES)
    .describe(`the engines to read, separated by commas; \`${ENGINES}\` when absent`),
});

/** The API's description documents pages for every list in general, but not for this one. They are followed if sent. */
const Page = z.object({
  databases: z.array(z.unknown()),
  links: z.object({ pages: z.object({ next: z.string().nullish() }).nullish() }).nullish(),
  meta: z.object({ total: countOrNone }).nullish(),
});

/** `database_cluster` in https://github.com/digitalocean/openapi, resources/databases/models. */
const Database = z.object({
  id: label,
  name: label,
  status: label,
  num_nodes: count,
  size: label,
  region: label,
  created_at: instant,
  project_id: label.nullish(),
  storage_size_mib: countOrNone.nullish(),
  engine: softwareText,
  version: softwareText,
  semantic_version: softwareText,
  version_end_of_life: softwareEnd,
});

export const adapter: ClusterAdapter = {
  id: 'digitalocean',
  options: Options,
  baseUrl: 'https://api.digitalocean.com',
  endpoints: [DATABASES],
  readsFiles: false,
  credentials: 'bearer',
  schedule: '4-59/5 * * * *',
  notes: `The token needs only the scope \`database:read\`; it reads the databases of its team. The id of a database's project is
the tenant, for the source's \`organizations\`. With the scope \`database:view_credentials\` the answers contain passwords,
which are neither stored nor logged.

| of DigitalOcean | becomes |
|---|---|
| \`id\` | the cluster's key |
| \`status\` | \`online\` is \`Active\`, \`creating\` is \`Creating\`; other states, such as \`resizing\`, \`migrating\` and \`forking\`, are published unchanged |
| \`num_nodes\` | the replicas, of 1 shard: primary and standby nodes. Read-only nodes, which another list has, are not counted |
| \`size\` | the machine's name, which also states its shape: \`db-s-2vcpu-4gb\` has 2 CPUs and 4 GiB. The source's \`machines\` must give the shape of a size of another form |
| \`region\` | the region's code, of the provider DigitalOcean |
| \`storage_size_mib\` | one disk of that size, in GiB. Its name, unit and price come from \`*\` in the source's \`diskTypes\`. If it is missing, the disks are unknown |
| \`engine\` | the engine; \`pg\` and \`advanced_pg\` are \`postgresql\`, \`advanced_mysql\` is \`mysql\` |
| \`semantic_version\`, else \`version\` | the version |
| \`version_end_of_life\` | the end of the version's support by DigitalOcean |
| (nothing) | the creator: the source's \`defaults\` may name a \`user\` |`,
  example: {
    organization: 'acme',
    diskTypes: {
      '*': { name: 'storage', price: { amount: '0.215', per: 'month', currency: 'USD' }, unit: 'Binary' },
    },
  },

  async *clusters({ http, options }) {
    const engines = listedNames(Options.parse(options ?? {}).engines);
    let index = 0;
    for await (const row of rowsOf(http)) {
      index += 1;
      const key = labelIn(row, 'id', 'name') ?? `database ${index}`;
      yield* itemOfType(row, key, 'engine', engines, () => described(parseRow(Database, row)));
    }
  },
};

async function* rowsOf(http: SourceHttp): AsyncGenerator<unknown, void> {
  let fetched = 0;
  let advertised: number | undefined;
  const pages = pagesByNumber(http, DATABASES, Page, { per_page: LARGEST_PAGE }, ({ links }, page) => {
    const next = links?.pages?.next;
    if (next == null) return undefined;
    const number = URL.canParse(next, http.base.href) && new URL(next, http.base).searchParams.get('page');
    if (number === String(page + 1)) return page + 1;
    throw anotherPage(DATABASES, page, 'links.pages.next does not name the page after it');
  });
  for await (const { data } of pages) {
    fetched += data.databases.length;
    advertised = data.meta?.total ?? advertised;
    yield* data.databases;
  }
  if (advertised !== undefined && fetched < advertised) throw incompleteList(DATABASES, fetched, advertised);
}

function described(database: z.infer<typeof Database>): DescribedCluster {
  const { name, status, storage_size_mib: mebibytes } = database;
  return {
    tenant: database.project_id ?? undefined,
    key: database.id,
    name,
    provider: 'DigitalOcean',
    region: { code: database.region },
    status: STATUS.get(status) ?? status,
    shards: 1,
    replicas: database.num_nodes,
    machine: machineOf(database.size),
    disks: disksOfGib(mebibytes && mebibytes / 1024),
    software: softwareOf({
      engine: database.engine,
      version: database.semantic_version ?? database.version,
      endOfLife: database.version_end_of_life,
    }),
    createdAt: database.created_at,
  };
}

/** "gb" means GiB, as in the sizes of Droplets, where "4gb" has 4096 MiB. */
function machineOf(name: string): DescribedCluster['machine'] {
  const { cpu, ram } = /(^|-)(?<cpu>[1-9]\d{0,3})vcpu-(?<ram>[1-9]\d{0,4})gb(-|$)/.exec(name)?.groups ?? {};
  return cpu === undefined ? { name } : { name, cpu: Number(cpu), ram: Number(ram), ramUnit: 'Binary' };
}
