import { z } from 'zod';
import type { DescribedCluster, ReportedMachine } from '../../domain/cluster.ts';
import {
  disksOfGib,
  idsIn,
  instant,
  itemOfType,
  pathSegment,
  softwareOf,
  softwareText,
} from '../cluster-fields.ts';
import {
  count,
  countOrNone,
  invalid,
  label,
  listedNames,
  nameList,
  quantity,
  someRows,
} from '../schema/fields.ts';
import { labelIn, parseRow } from '../schema/rows.ts';
import type { ClusterAdapter, SourceHttp } from '../source.ts';

const PROJECTS = '/v1/project';

/** The service types that are databases. Others, such as queues and dashboards, are no clusters. */
const DATABASES = 'alloydbomni,cassandra,clickhouse,dragonfly,influxdb,m3db,mysql,opensearch,pg,redis,valkey';

/** The states with a word in the contract. Aiven's other states do not distinguish a new service from a moved one. */
const STATUS: ReadonlyMap<string, string> = new Map([
  ['RUNNING', 'Active'],
  ['POWEROFF', 'Stopped'],
]);

/** Aiven's prefixes of clouds whose providers have another name in Fleetbook. Names ignore case: `aws` is AWS. */
const PROVIDERS: ReadonlyMap<string, string> = new Map([
  ['google', 'GCP'],
  ['do', 'DigitalOcean'],
  ['avn-ovh', 'OVH'],
]);

const Options = z.strictObject({
  projects: nameList
    .optional()
    .describe('the projects to read, separated by commas; all projects of the token when absent'),
  types: nameList
    .default(DATABASES)
    .describe(`the types of service that are clusters, separated by commas; \`${DATABASES}\` when absent`),
});

const Projects = z.object({ projects: someRows });
const Project = z.object({ project_name: pathSegment }).transform(({ project_name }) => project_name);
const Services = z.object({ services: z.array(z.unknown()) });

const NodeState = z.object({
  state: label,
  shard: z.object({ name: label.nullish(), position: countOrNone.nullish() }).nullish(),
});

/** By `<service_type>_version`. */
const Versions = z.record(z.string(), z.unknown()).nullish().catch(undefined);

/** `ServiceOut` in Aiven's client (aiven/go-client-codegen). The nullish fields are optional there. */
const Service = z
  .object({
    service_name: label,
    service_type: softwareText,
    metadata: Versions,
    user_config: Versions,
    state: label,
    cloud_name: label,
    plan: label,
    node_count: count.nullish(),
    node_states: z.array(NodeState).nullish(),
    node_cpu_count: count.nullish(),
    node_memory_mb: quantity.nullish(),
    disk_space_mb: countOrNone.nullish(),
    create_time: instant,
  })
  .transform(({ node_count, node_states, ...service }, context) => {
    // A leaving node has been replaced already.
    const staying = (node_states ?? []).filter(({ state }) => state !== 'leaving');
    const nodes = node_count ?? staying.length;
    if (nodes > 0) return { ...service, nodes, staying };
    const problem = 'is missing, and node_states names no node; one of them must state the count of nodes';
    return invalid(context, problem, 'node_count');
  });
type Service = z.infer<typeof Service>;

export const adapter: ClusterAdapter = {
  id: 'aiven',
  options: Options,
  baseUrl: 'https://api.aiven.io',
  endpoints: [PROJECTS, `${PROJECTS}/{project}/service`],
  readsFiles: false,
  credentials: 'aivenv1',
  schedule: '2-57/5 * * * *',
  notes: `A project is a tenant, for the source's \`organizations\`. A project that cannot be read fails the whole run. If
one project must not stop the others, configure one source for each.

| of Aiven | becomes |
|---|---|
| \`project/service_name\` | the cluster's key. Aiven has no other id: a service that is deleted and created again under its old name counts as the old one |
| \`state\` | \`RUNNING\` is \`Active\`, \`POWEROFF\` is \`Stopped\`; other states, such as \`REBUILDING\` and \`REBALANCING\`, are published unchanged |
| \`cloud_name\` | \`aws-eu-west-1\` is the region \`eu-west-1\` of \`aws\`. \`google-…\` is GCP, \`do-…\` DigitalOcean, \`avn-ovh-…\` OVH; any other provider is published under Aiven's word. The source's \`providers\` may rename these words, and its \`regions\` may replace a code that Aiven shortens, such as \`fra\` for \`fra1\`. The whole name of a custom cloud, \`custom-…\`, is a region; the source's \`defaults\` must name its provider |
| \`node_states[].shard\` | the count of shards; 1 if no node is in a shard, as in a service that is powered off |
| \`node_count\` | divided by the shards: the replicas. If it is missing, the nodes in \`node_states\` are counted, without leaving ones; a service with neither is rejected |
| \`plan\`, \`node_cpu_count\`, \`node_memory_mb\` | the machine's name and shape; memory in GiB of 1024 MB, rounded up to a whole one |
| \`service_type\` | the engine; \`pg\` is \`postgresql\` |
| \`metadata.<type>_version\`, else \`user_config.<type>_version\` | the version: the running one, else the requested one |
| \`disk_space_mb\` | one disk of that many GiB. Its name, unit and price come from \`*\` in the source's \`diskTypes\` |`,

  async *clusters({ http, options }) {
    const { projects, types } = Options.parse(options ?? {});
    const wanted = listedNames(types);
    for (const project of projects === undefined ? await projectsOf(http) : listedNames(projects)) {
      const { data } = await http.json(`${PROJECTS}/${project}/service`, Services);
      for (const [index, row] of data.services.entries()) {
        const key = `${project}/${labelIn(row, 'service_name') ?? `service ${index + 1}`}`;
        const read = () => described(parseRow(Service, row), project);
        yield* itemOfType(row, key, 'service_type', wanted, read);
      }
    }
  },
};

async function projectsOf(http: SourceHttp): Promise<ReadonlySet<string>> {
  const { data } = await http.json(PROJECTS, Projects);
  return idsIn(PROJECTS, data.projects, Project, ['projects']);
}

function described(service: Service, project: string): DescribedCluster {
  const { service_name: name, state, disk_space_mb: mebibytes } = service;
  const shards = shardsOf(service);
  return {
    tenant: project,
    key: `${project}/${name}`,
    name,
    ...placeOf(service.cloud_name),
    status: STATUS.get(state) ?? state,
    shards,
    // While shards are added or removed, the division has a remainder.
    replicas: Math.ceil(service.nodes / shards),
    machine: machineOf(service),
    disks: disksOfGib(mebibytes && mebibytes / 1024),
    software: softwareOf({ engine: service.service_type, version: versionOf(service) }),
    createdAt: service.create_time,
  };
}

function versionOf({ service_type: type, metadata, user_config: config }: Service) {
  const field = `${type}_version`;
  return softwareText.parse(metadata?.[field]) ?? softwareText.parse(config?.[field]);
}

function shardsOf({ staying }: Service): number {
  const shards = staying.map(({ shard }) => shard?.name ?? shard?.position?.toString());
  return Math.max(1, new Set(shards.filter((shard) => shard !== undefined)).size);
}

/** The name of a custom cloud (`custom-…`) states neither its provider nor its region. */
function placeOf(cloud: string): Pick<DescribedCluster, 'provider' | 'providerName' | 'region'> {
  const [, provider, code] = /^(?!custom-)(avn-[^-]+|[^-]+)-(.+)$/.exec(cloud) ?? [];
  if (provider === undefined || code === undefined) return { region: { code: cloud } };
  return { provider, providerName: PROVIDERS.get(provider), region: { code } };
}

function machineOf({ plan: name, node_cpu_count: cpu, node_memory_mb }: Service): ReportedMachine {
  if (cpu == null || node_memory_mb == null) return { name };
  return { name, cpu, ram: Math.ceil(node_memory_mb / 1024), ramUnit: 'Binary' };
}
