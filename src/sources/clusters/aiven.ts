import { z } from 'zod';
import type { DescribedCluster } from '../../domain/cluster.ts';
import { memory } from '../../domain/machine.ts';
import { instant, pathSegment } from '../cluster-fields.ts';
import { nothingListed } from '../http/listing.ts';
import { count, countOrNone, label, quantity } from '../schema/fields.ts';
import { listedNames, nameList } from '../schema/name-list.ts';
import { labelIn, readRow, rejectedRow } from '../schema/rows.ts';
import { type ClusterAdapter, type ClusterItem, SourceError, type SourceHttp } from '../source.ts';

const PROJECTS = '/v1/project';

/** The service types that are databases. Queues, connectors, dashboards and the like are no clusters. */
const DATABASES = 'alloydbomni,cassandra,clickhouse,dragonfly,influxdb,m3db,mysql,opensearch,pg,redis,valkey';

/** The states that the contract has a word for. Aiven's states do not tell a new service from one that is moved. */
const STATUS: ReadonlyMap<string, string> = new Map([
  ['RUNNING', 'Active'],
  ['POWEROFF', 'Stopped'],
]);

/**
 * The vendors whose catalogues are read under another name than Aiven's. The prefixes are those of Aiven's list of
 * clouds; `aws`, `azure` and `upcloud` are known under these names, since upper and lower case are the same there.
 */
const PROVIDERS: ReadonlyMap<string, string> = new Map([
  ['google', 'GCP'],
  ['do', 'DigitalOcean'],
  ['avn-ovh', 'OVH'],
]);

const Options = z.strictObject({
  projects: nameList
    .optional()
    .describe('the projects to read, separated by commas; all that the token may see when absent'),
  types: nameList
    .default(DATABASES)
    .describe(`the types of service that are clusters, separated by commas; \`${DATABASES}\` when absent`),
});

const Projects = z.object({ projects: z.array(z.unknown()) });
const Project = z.object({ project_name: pathSegment });
const Services = z.object({ services: z.array(z.unknown()) });
const Kind = z.object({ service_type: label });

const NodeState = z.object({
  state: label,
  shard: z.object({ name: label.nullish(), position: countOrNone.nullish() }).nullish(),
});

/** As in Aiven's own client (`ServiceOut` of aiven/go-client-codegen), in which all that is nullish here may be left out. */
const Service = z
  .object({
    service_name: label,
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
    // A node that leaves has been replaced already.
    const staying = (node_states ?? []).filter(({ state }) => state !== 'leaving');
    const nodes = node_count ?? staying.length;
    if (nodes > 0) return { ...service, nodes, staying };
    const message =
      'is missing, and node_states names no node; one of them must say how many nodes there are';
    context.addIssue({ code: 'custom', path: ['node_count'], message });
    return z.NEVER;
  });
type Service = z.infer<typeof Service>;

/** The databases that Aiven runs for its customers. */
export const adapter: ClusterAdapter = {
  id: 'aiven',
  options: Options,
  baseUrl: 'https://api.aiven.io',
  endpoints: [PROJECTS, `${PROJECTS}/{project}/service`],
  readsFiles: false,
  credentials: 'aivenv1',
  schedule: '2-57/5 * * * *',
  notes: `A project is a tenant, for the source's \`organizations\`. A project that cannot be read fails the whole reading;
where one must not stop the others, give each a source of its own.

| of Aiven | becomes |
|---|---|
| \`project/service_name\` | what identifies the cluster: Aiven gives no other id, so a service that is deleted and made again under its old name is taken for the old one |
| \`state\` | \`RUNNING\` is \`Active\`, \`POWEROFF\` is \`Stopped\`; others, such as \`REBUILDING\` and \`REBALANCING\`, stay as they are |
| \`cloud_name\` | \`aws-eu-west-1\` is the region \`eu-west-1\` of \`aws\`. \`google-…\` is GCP, \`do-…\` DigitalOcean, \`avn-ovh-…\` OVH; a provider that is not known here is published under Aiven's word for it. The source's \`providers\` may name any of these words otherwise, and its \`regions\` a code that Aiven abridges or spells its own way, such as \`fra\` for \`fra1\`. A cloud of your own, \`custom-…\`, is a region by its whole name, whose provider the source's \`defaults\` have to say |
| \`node_states[].shard\` | the shards are counted; 1 where no node is in one, as in a service that is powered off |
| \`node_count\` | divided by the shards: the replicas. Where it is missing, the nodes in \`node_states\` are counted that do not leave; a service that has neither is rejected |
| \`plan\`, \`node_cpu_count\`, \`node_memory_mb\` | the machine's name and shape; memory in GiB of 1024 MB, rounded up to a whole one |
| \`disk_space_mb\` | one disk of so many GiB, as Aiven counts it, of which it says no more: name, unit and price are those of \`*\` in the source's \`diskTypes\` |`,

  async *clusters({ http, options }) {
    const { projects, types } = Options.parse(options ?? {});
    const wanted = listedNames(types);
    for (const project of projects === undefined ? await projectsOf(http) : listedNames(projects)) {
      const { data } = await http.json(`${PROJECTS}/${project}/service`, Services);
      for (const [index, row] of data.services.entries()) {
        const item = itemOf(row, index, project, wanted);
        if (item !== undefined) yield item;
      }
    }
  },
};

async function projectsOf(http: SourceHttp): Promise<ReadonlySet<string>> {
  const { data } = await http.json(PROJECTS, Projects);
  if (data.projects.length === 0) throw nothingListed(PROJECTS);
  const found = new Set<string>();
  for (const [index, row] of data.projects.entries()) {
    const { value, reason } = readRow(Project, row, ['projects', index]);
    // Without its name it is not known which clusters must not count as missing.
    if (value === undefined) throw new SourceError('invalid', `${PROJECTS}: ${reason}`);
    found.add(value.project_name);
  }
  return found;
}

/** Undefined for a service that is no cluster. */
function itemOf(
  row: unknown,
  index: number,
  project: string,
  wanted: ReadonlySet<string>,
): ClusterItem | undefined {
  const key = `${project}/${labelIn(row, 'service_name') ?? `service ${index + 1}`}`;
  const kind = readRow(Kind, row);
  if (kind.value === undefined) return rejectedRow(key, kind.reason, {});
  if (!wanted.has(kind.value.service_type)) return undefined;
  const { value, reason } = readRow(Service, row);
  if (value === undefined) return rejectedRow(key, reason, {});
  return { kind: 'cluster', cluster: described(value, project) };
}

function described(service: Service, project: string): DescribedCluster {
  const shards = shardsOf(service);
  return {
    tenant: project,
    key: `${project}/${service.service_name}`,
    name: service.service_name,
    ...placeOf(service.cloud_name),
    status: STATUS.get(service.state) ?? service.state,
    shards,
    // While shards are added or removed, their number does not divide that of the nodes.
    replicas: Math.ceil(service.nodes / shards),
    machine: machineOf(service),
    ...disksOf(service),
    createdAt: service.create_time,
  };
}

function shardsOf({ staying }: Service): number {
  const shards = staying.map(({ shard }) => shard?.name ?? shard?.position?.toString());
  return Math.max(1, new Set(shards.filter((shard) => shard !== undefined)).size);
}

/** The name of a customer's own cloud (`custom-…`) states neither its provider nor its region. */
function placeOf(cloud: string): Pick<DescribedCluster, 'provider' | 'providerName' | 'region'> {
  const [, provider, code] = /^(?!custom-)(avn-[^-]+|[^-]+)-(.+)$/.exec(cloud) ?? [];
  if (provider === undefined || code === undefined) return { region: { code: cloud } };
  const providerName = PROVIDERS.get(provider);
  return { provider, ...(providerName === undefined ? {} : { providerName }), region: { code } };
}

function machineOf({
  plan,
  node_cpu_count,
  node_memory_mb,
}: Service): NonNullable<DescribedCluster['machine']> {
  if (node_cpu_count == null || node_memory_mb == null) return { name: plan };
  const { ram, unit } = memory(node_memory_mb, 'MiB');
  return { name: plan, cpu: node_cpu_count, ram: Math.ceil(ram), ramUnit: unit };
}

function disksOf({ disk_space_mb }: Service): Pick<DescribedCluster, 'disks'> {
  if (disk_space_mb == null) return {};
  if (disk_space_mb === 0) return { disks: [] };
  return { disks: [{ type: {}, size: disk_space_mb / 1024, unit: 'GiB' }] };
}
