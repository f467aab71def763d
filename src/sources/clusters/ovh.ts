import { z } from 'zod';
import type { DescribedCluster, DescribedDisk } from '../../domain/cluster.ts';
import { instant, pathSegment } from '../cluster-fields.ts';
import { nothingListed } from '../http/listing.ts';
import { count, label, oneOf, quantity } from '../schema/fields.ts';
import { listedNames, nameList } from '../schema/name-list.ts';
import { labelIn, type Row, readRow, rejectedRow } from '../schema/rows.ts';
import { type ClusterAdapter, type ClusterItem, SourceError, type SourceHttp } from '../source.ts';

const PROJECTS = '/v1/cloud/project';

/** The engines that are databases. Queues, connectors and dashboards are no clusters. */
const ENGINES = 'cassandra,clickhouse,m3db,mongodb,mysql,opensearch,postgresql,redis,valkey';

/** The states that the contract has a word for. */
const STATUS: ReadonlyMap<string, string> = new Map([
  ['CREATING', 'Creating'],
  ['READY', 'Active'],
]);

const Options = z.strictObject({
  projects: nameList
    .optional()
    .describe('the ids of the projects to read, separated by commas; all that the token may see when absent'),
  engines: nameList
    .default(ENGINES)
    .describe(`the engines whose services are read, separated by commas; \`${ENGINES}\` when absent`),
});

const Ids = z.array(z.unknown());
const Capabilities = z.object({ flavors: z.array(z.unknown()) });

/** How the API states an amount of memory or disk. */
const Size = z
  .object({ unit: oneOf(['MB', 'MiB', 'GB', 'GiB', 'TB', 'TiB']), value: quantity })
  .transform(({ unit, value }): { unit: DescribedDisk['unit']; value: number } => {
    if (unit === 'MB') return { unit: 'GB', value: value / 1000 };
    return unit === 'MiB' ? { unit: 'GiB', value: value / 1024 } : { unit, value };
  });

/** `core` and `memory` (GB) are what older answers have in place of the specifications. */
const Flavor = z
  .object({
    specifications: z.object({ core: count, memory: Size }).nullish(),
    core: count.nullish(),
    memory: quantity.nullish(),
  })
  .transform(({ specifications, core, memory }, context) => {
    if (specifications != null) return { cpu: specifications.core, memory: specifications.memory };
    if (core != null && memory != null) return { cpu: core, memory: { unit: 'GB', value: memory } as const };
    const message = 'is missing, and so are core and memory; one of them must say the shape of the flavor';
    context.addIssue({ code: 'custom', path: ['specifications'], message });
    return z.NEVER;
  });
type Flavor = z.infer<typeof Flavor>;

const Engine = z.object({ engine: label });

/**
 * `cloud.project.database.Service` of the API's own schema, https://eu.api.ovh.com/v1/cloud.json, which OVH keeps in
 * ovh/ovhcloud-cli as well. What is nullish here is nullable, deprecated or newer there.
 */
const Service = z
  .object({
    id: label,
    description: z.union([z.literal(''), label]).nullish(),
    status: label,
    flavor: label,
    region: label.nullish(),
    nodes: z.array(z.object({ region: label.nullish() })).nullish(),
    nodeNumber: count.nullish(),
    storage: z.object({ size: Size, type: label.nullish() }).nullish(),
    /** In GB. */
    disk: z.object({ size: quantity.nullish(), type: label.nullish() }).nullish(),
    createdAt: instant,
  })
  .transform(({ nodes, nodeNumber, ...service }, context) => {
    const replicas = nodes == null || nodes.length === 0 ? nodeNumber : nodes.length;
    const region = service.region ?? nodes?.find((node) => node.region != null)?.region;
    if (replicas != null) return { ...service, region, replicas };
    const message = 'is missing, and so is nodeNumber; one of them must say how many nodes there are';
    context.addIssue({ code: 'custom', path: ['nodes'], message });
    return z.NEVER;
  });
type Service = z.infer<typeof Service>;

/** The databases that OVH runs for its customers, in projects of its Public Cloud. */
export const adapter: ClusterAdapter = {
  id: 'ovh',
  options: Options,
  baseUrl: 'https://eu.api.ovh.com',
  endpoints: [
    PROJECTS,
    `${PROJECTS}/{project}/database/service`,
    `${PROJECTS}/{project}/database/capabilities`,
    `${PROJECTS}/{project}/database/service/{service}`,
  ],
  readsFiles: false,
  credentials: 'bearer',
  schedule: '3-58/5 * * * *',
  notes: `The token is an OAuth 2.0 access token of a service account whose policy lets it \`GET\` these addresses. It lives for an
hour, so a source that is to last has [credentials that renew themselves](#credentials):

\`\`\`json
{
  "clusters": [
    {
      "id": "ovh-databases",
      "adapter": "ovh",
      "credentials": {
        "type": "client-credentials",
        "tokenUrl": "https://www.ovh.com/auth/oauth2/token",
        "clientId": "EU.0123456789abcdef",
        "clientSecretEnv": "OVH_CLIENT_SECRET",
        "scope": "all"
      },
      "organizations": { "0123456789abcdef0123456789abcdef": "acme" },
      "diskTypes": {
        "*": { "name": "storage", "price": { "amount": "0.15", "per": "month", "currency": "EUR" }, "unit": "Decimal" }
      }
    }
  ]
}
\`\`\`

A project is a tenant, by its id, for the source's \`organizations\`. OVH lists the ids of services alone: each service is
asked for by itself. A project that cannot be read, and a service that is deleted between its listing and its reading,
fail the whole reading, which is repeated; where one project must not stop the others, give each a source of its own.

| of OVH | becomes |
|---|---|
| \`id\` | what identifies the cluster |
| \`description\`, else \`id\` | its name |
| \`status\` | \`READY\` is \`Active\`, \`CREATING\` is \`Creating\`; others, such as \`UPDATING\`, \`LOCKED\` and \`SHELVED\`, stay as they are |
| \`nodes\`, else \`nodeNumber\` | the replicas, of 1 shard |
| \`flavor\` | the machine's name. Its shape is that of the project's \`capabilities\`, in the unit that they name; a flavor that is not listed is a name alone: say its shape in the source's \`machines\` |
| \`storage\`, else \`disk\` | one disk of that size, \`disk\` in GB. Its type is the one that OVH names, if any; else name, unit and price are those of \`*\` in the source's \`diskTypes\`. Where both are missing, nothing is said of disks |
| \`region\`, else that of the first node | the region's code, such as \`GRA\`, of the provider OVH. Its machines are sold in \`GRA11\` and the like: the source's \`regions\` may name one for it |
| (nothing) | who made it: the source's \`defaults\` may say a \`user\` |`,

  async *clusters({ http, options }) {
    const { projects, engines } = Options.parse(options ?? {});
    const wanted = listedNames(engines);
    for (const project of projects === undefined ? await projectsOf(http) : listedNames(projects))
      yield* clustersOf(http, project, wanted);
  },
};

async function projectsOf(http: SourceHttp): Promise<ReadonlySet<string>> {
  const ids = await idsOf(http, PROJECTS);
  if (ids.size === 0) throw nothingListed(PROJECTS);
  return ids;
}

/** @throws SourceError `invalid` for an id that cannot be asked for: what it stands for must not count as missing */
async function idsOf(http: SourceHttp, path: string): Promise<ReadonlySet<string>> {
  const { data } = await http.json(path, Ids);
  const found = new Set<string>();
  for (const [index, row] of data.entries()) {
    const { value, reason } = readRow(pathSegment, row, [index]);
    if (value === undefined) throw new SourceError('invalid', `${path}: ${reason}`);
    found.add(value);
  }
  return found;
}

async function* clustersOf(
  http: SourceHttp,
  project: string,
  engines: ReadonlySet<string>,
): AsyncGenerator<ClusterItem> {
  const path = `${PROJECTS}/${project}/database/service`;
  const ids = await idsOf(http, path);
  if (ids.size === 0) return;
  const flavors = await flavorsOf(http, project);
  for (const id of ids) {
    const { data: row } = await http.json(`${path}/${id}`, z.looseObject({}));
    const item = itemOf(row, id, project, engines, flavors);
    if (item !== undefined) yield item;
  }
}

/** By their names. */
async function flavorsOf(http: SourceHttp, project: string): Promise<ReadonlyMap<string, Row<Flavor>>> {
  const { data } = await http.json(`${PROJECTS}/${project}/database/capabilities`, Capabilities);
  const flavors = new Map<string, Row<Flavor>>();
  for (const row of data.flavors) {
    const name = labelIn(row, 'name');
    // A flavor without a name is as one that is not listed.
    if (name !== undefined) flavors.set(name, readRow(Flavor, row));
  }
  return flavors;
}

/** Undefined for a service that is no cluster. */
function itemOf(
  row: unknown,
  id: string,
  project: string,
  engines: ReadonlySet<string>,
  flavors: ReadonlyMap<string, Row<Flavor>>,
): ClusterItem | undefined {
  const engine = readRow(Engine, row);
  if (engine.value === undefined) return rejectedRow(id, engine.reason, {});
  if (!engines.has(engine.value.engine)) return undefined;
  const { value, reason } = readRow(Service, row);
  if (value === undefined) return rejectedRow(id, reason, {});
  if (value.id !== id) return rejectedRow(id, 'id is that of another service', {});
  const flavor = flavors.get(value.flavor);
  if (flavor?.reason !== undefined)
    return rejectedRow(id, `flavor is ${value.flavor}, of which the capabilities say: ${flavor.reason}`, {});
  return { kind: 'cluster', cluster: described(value, project, flavor?.value) };
}

/** @param flavor undefined where the capabilities do not list it: the machine is a name alone then */
function described(service: Service, project: string, flavor: Flavor | undefined): DescribedCluster {
  const { id, description, status, region, replicas, createdAt } = service;
  return {
    tenant: project,
    key: id,
    name: description || id,
    provider: 'OVH',
    ...(region == null ? {} : { region: { code: region } }),
    status: STATUS.get(status) ?? status,
    shards: 1,
    replicas,
    machine: { name: service.flavor, ...shapeOf(flavor) },
    ...disksOf(service),
    createdAt,
  };
}

const MEMORY = {
  GB: { factor: 1, ramUnit: 'Decimal' },
  TB: { factor: 1000, ramUnit: 'Decimal' },
  GiB: { factor: 1, ramUnit: 'Binary' },
  TiB: { factor: 1024, ramUnit: 'Binary' },
} as const;

function shapeOf(flavor: Flavor | undefined) {
  if (flavor === undefined) return {};
  const { factor, ramUnit } = MEMORY[flavor.memory.unit];
  return { cpu: flavor.cpu, ram: Math.ceil(flavor.memory.value * factor), ramUnit };
}

function disksOf({ storage, disk }: Service): Pick<DescribedCluster, 'disks'> {
  const size = storage?.size ?? (disk?.size == null ? undefined : { unit: 'GB' as const, value: disk.size });
  if (size === undefined) return {};
  const name = storage?.type ?? disk?.type;
  return { disks: [{ type: name == null ? {} : { name }, size: size.value, unit: size.unit }] };
}
