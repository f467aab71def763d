import { z } from 'zod';
import type { DescribedCluster, DescribedDisk } from '../../domain/cluster.ts';
import { idsIn, instant, itemOfType, pathSegment, softwareOf, softwareText } from '../cluster-fields.ts';
import { count, invalid, label, listedNames, nameList, oneOf, quantity, someRows } from '../schema/fields.ts';
import { labelIn, parseRow, type Row, readRow, unusable, valueIn } from '../schema/rows.ts';
import type { ClusterAdapter, ClusterItem, SourceHttp } from '../source.ts';

const PROJECTS = '/v1/cloud/project';

/** The engines that are databases. Others, such as queues and dashboards, are no clusters. */
const ENGINES = 'cassandra,clickhouse,m3db,mongodb,mysql,opensearch,postgresql,redis,valkey';

const STATUS: ReadonlyMap<string, string> = new Map([
  ['CREATING', 'Creating'],
  ['READY', 'Active'],
]);

const Options = z.strictObject({
  projects: nameList
    .optional()
    .describe('the ids of the projects to read, separated by commas; all projects of the token when absent'),
  engines: nameList
    .default(ENGINES)
    .describe(`the engines to read, separated by commas; \`${ENGINES}\` when absent`),
});

const Capabilities = z.object({ flavors: z.array(z.unknown()) });

const Size = z
  .object({ unit: oneOf(['MB', 'MiB', 'GB', 'GiB', 'TB', 'TiB']), value: quantity })
  .transform(({ unit, value }): { unit: DescribedDisk['unit']; value: number } => {
    if (unit === 'MB') return { unit: 'GB', value: value / 1000 };
    return unit === 'MiB' ? { unit: 'GiB', value: value / 1024 } : { unit, value };
  });

/** Older answers have `core` and `memory` (GB) instead of the specifications. */
const Flavor = z
  .object({
    specifications: z.object({ core: count, memory: Size }).nullish(),
    core: count.nullish(),
    memory: quantity.nullish(),
  })
  .transform(({ specifications, core, memory }, context) => {
    if (specifications != null) return { cpu: specifications.core, memory: specifications.memory };
    if (core != null && memory != null) return { cpu: core, memory: { unit: 'GB', value: memory } as const };
    const problem = 'is missing, and so are core and memory; one of them must state the shape of the flavor';
    return invalid(context, problem, 'specifications');
  });
type Flavor = z.infer<typeof Flavor>;

/** `cloud.project.database.Service` in https://eu.api.ovh.com/v1/cloud.json; its nullish fields are nullable or newer there. */
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
    disk: z.object({ size: quantity.nullish(), type: label.nullish() }).nullish(),
    engine: softwareText,
    version: softwareText,
    createdAt: instant,
  })
  .transform(({ nodes, nodeNumber, ...service }, context) => {
    const replicas = nodes == null || nodes.length === 0 ? nodeNumber : nodes.length;
    const region = service.region ?? nodes?.find((node) => node.region != null)?.region;
    if (replicas != null) return { ...service, region, replicas };
    const problem = 'is missing, and so is nodeNumber; one of them must state the count of nodes';
    return invalid(context, problem, 'nodes');
  });
type Service = z.infer<typeof Service>;

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
  notes: `The token is an OAuth 2.0 access token of a service account whose policy lets it \`GET\` these addresses. It expires
after an hour: use [credentials that renew themselves](#credentials).

The id of a project is the tenant, for the source's \`organizations\`. OVH lists only the ids of services: each service needs
one request. The whole run fails if a project cannot be read, or if a service is deleted after it was listed; the run is
repeated. If one project must not stop the others, configure one source for each.

| of OVH | becomes |
|---|---|
| \`id\` | the cluster's key |
| \`description\`, else \`id\` | its name |
| \`status\` | \`READY\` is \`Active\`, \`CREATING\` is \`Creating\`; other states, such as \`UPDATING\`, \`LOCKED\` and \`SHELVED\`, are published unchanged |
| \`nodes\`, else \`nodeNumber\` | the replicas, of 1 shard |
| \`flavor\` | the machine's name. The project's \`capabilities\` state its shape, in their unit; the source's \`machines\` must give the shape of a flavor that they do not list |
| \`storage\`, else \`disk\` | one disk of that size, \`disk\` in GB. If OVH names no type, its name, unit and price come from \`*\` in the source's \`diskTypes\`. If both are missing, the disks are unknown |
| \`region\`, else that of the first node | the code of a region of the provider OVH, such as \`GRA\`. Its machines are sold in regions such as \`GRA11\`: the source's \`regions\` may name one of these instead |
| \`engine\`, \`version\` | engine and version |
| (nothing) | the creator: the source's \`defaults\` may name a \`user\` |`,
  example: {
    credentials: {
      type: 'client-credentials',
      tokenUrl: 'https://www.ovh.com/auth/oauth2/token',
      clientId: 'EU.0123456789abcdef',
      clientSecretEnv: 'OVH_CLIENT_SECRET',
      scope: 'all',
    },
    organizations: { '0123456789abcdef0123456789abcdef': 'acme' },
    diskTypes: {
      '*': { name: 'storage', price: { amount: '0.15', per: 'month', currency: 'EUR' }, unit: 'Decimal' },
    },
  },

  async *clusters({ http, options }) {
    const { projects, engines } = Options.parse(options ?? {});
    const wanted = listedNames(engines);
    for (const project of projects === undefined ? await projectsOf(http) : listedNames(projects))
      yield* clustersOf(http, project, wanted);
  },
};

async function projectsOf(http: SourceHttp): Promise<ReadonlySet<string>> {
  return idsIn(PROJECTS, (await http.json(PROJECTS, someRows)).data, pathSegment);
}

async function* clustersOf(
  http: SourceHttp,
  project: string,
  engines: ReadonlySet<string>,
): AsyncGenerator<ClusterItem> {
  const path = `${PROJECTS}/${project}/database/service`;
  const ids = idsIn(path, (await http.json(path, z.array(z.unknown()))).data, pathSegment);
  if (ids.size === 0) return;
  const flavors = await flavorsOf(http, project);
  for (const id of ids) {
    const { data: row } = await http.json(`${path}/${id}`, z.looseObject({}));
    yield* itemOfType(row, id, 'engine', engines, () => {
      const service = parseRow(Service, row);
      if (service.id !== id) unusable('id is that of another service');
      const flavor = flavors.get(service.flavor);
      const shape =
        flavor && valueIn(flavor, `flavor is ${service.flavor}, which is unusable in the capabilities: `);
      return described(service, project, shape);
    });
  }
}

async function flavorsOf(http: SourceHttp, project: string): Promise<ReadonlyMap<string, Row<Flavor>>> {
  const { data } = await http.json(`${PROJECTS}/${project}/database/capabilities`, Capabilities);
  const flavors = new Map<string, Row<Flavor>>();
  for (const row of data.flavors) {
    const name = labelIn(row, 'name');
    if (name !== undefined) flavors.set(name, readRow(Flavor, row));
  }
  return flavors;
}

function described(service: Service, project: string, flavor: Flavor | undefined): DescribedCluster {
  const { id, description, status, region, replicas, createdAt } = service;
  return {
    tenant: project,
    key: id,
    name: description || id,
    provider: 'OVH',
    region: region == null ? undefined : { code: region },
    status: STATUS.get(status) ?? status,
    shards: 1,
    replicas,
    machine: { name: service.flavor, ...shapeOf(flavor) },
    disks: disksOf(service),
    software: softwareOf(service),
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

function disksOf({ storage, disk }: Service): DescribedCluster['disks'] {
  const size = storage?.size ?? (disk?.size == null ? undefined : { unit: 'GB' as const, value: disk.size });
  if (size === undefined) return undefined;
  const name = storage?.type ?? disk?.type ?? undefined;
  return [{ type: { name }, size: size.value, unit: size.unit }];
}
