import { z } from 'zod';
import type { DescribedCluster } from '../../domain/cluster.ts';
import { clusterItem, idsIn, instant, pathSegment, softwareOf, softwareText } from '../cluster-fields.ts';
import { nothingListed, pagesByToken } from '../http/lists.ts';
import { count, invalid, label, omittedAtEnd, quantity } from '../schema/fields.ts';
import { labelIn, parseRow } from '../schema/rows.ts';
import type { ClusterAdapter, SourceHttp } from '../source.ts';

const ORGANIZATIONS = '/v1/organizations';

/** The states with a word in the contract. `idle` has none: the next query wakes the service. */
const STATUS: ReadonlyMap<string, string> = new Map([
  ['provisioning', 'Creating'],
  ['running', 'Active'],
  ['stopped', 'Stopped'],
  ['degraded', 'Degraded'],
  ['terminating', 'Terminating'],
]);

const Options = z.strictObject({
  memoryPerCpu: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, { error: 'must be a whole number above 0' })
    .optional()
    .describe(
      'GiB of memory of a replica of the standard profile for each CPU, since the API states no CPUs; when absent `4`, and 8 CPUs for 28 GiB',
    ),
});

/**
 * Organizations or services. The vendor documents a cursor for organizations, but its answers of 2026 lack it, and its command line
 * (ClickHouse/clickhousectl) calls it absent on the last page. A key belongs to one organization, so no page is lost.
 */
const Page = z.object({ result: z.array(z.unknown()), nextCursor: omittedAtEnd });
const Organization = z.object({ id: pathSegment }).transform(({ id }) => id);

/** Its replicas have 4 GiB for each CPU, as the vendor documents. Other profiles have another ratio, which is not stated. */
const STANDARD_PROFILE = 'v1-default';

/** As in the vendor's OpenAPI description. The nullish fields are optional there. */
const Service = z
  .object({
    id: label,
    name: label,
    provider: label,
    region: label,
    state: label,
    numReplicas: count.nullish(),
    /** Replaces `numReplicas` if the number of replicas scales. */
    minReplicas: count.nullish(),
    minReplicaMemoryGb: quantity.nullish(),
    /** Replaces the range of memory if the number of replicas scales. */
    replicaMemoryGb: quantity.nullish(),
    /** Of all replicas. Deprecated: the vendor calls it inaccurate unless there are three replicas. */
    minTotalMemoryGb: quantity.nullish(),
    profile: label.nullish(),
    clickhouseVersion: softwareText,
    createdAt: instant,
  })
  .transform(({ numReplicas, minReplicas, ...service }, context) => {
    const replicas = numReplicas ?? minReplicas;
    const { minReplicaMemoryGb, replicaMemoryGb, minTotalMemoryGb } = service;
    if (replicas != null) {
      const share = minTotalMemoryGb == null ? undefined : minTotalMemoryGb / replicas;
      return { ...service, replicas, replicaMemory: minReplicaMemoryGb ?? replicaMemoryGb ?? share };
    }
    const problem = 'is missing, and so is minReplicas; one of them must be a whole number above 0';
    return invalid(context, problem, 'numReplicas');
  });
type Service = z.infer<typeof Service>;

export const adapter: ClusterAdapter = {
  id: 'clickhouse-cloud',
  options: Options,
  baseUrl: 'https://api.clickhouse.cloud',
  endpoints: [ORGANIZATIONS, `${ORGANIZATIONS}/{organization}/services`],
  readsFiles: false,
  credentials: 'basic',
  schedule: '3-58/5 * * * *',
  notes: `The token is an API key's \`id:secret\`. A key belongs to one organization, whose id is the tenant, for the source's
\`organizations\`.

| of ClickHouse Cloud | becomes |
|---|---|
| \`id\` | the cluster's key |
| \`state\` | \`running\` is \`Active\`, \`stopped\` is \`Stopped\`, \`provisioning\` is \`Creating\`, \`degraded\` is \`Degraded\`, \`terminating\` is \`Terminating\`; other states, such as \`idle\`, are published unchanged |
| (nothing) | 1 shard: replicas share the storage, and each has all data |
| \`numReplicas\`, else \`minReplicas\` | the replicas |
| \`minReplicaMemoryGb\`, else \`replicaMemoryGb\`, else \`minTotalMemoryGb\` divided by the replicas | the machine: that many GiB, rounded up, the least memory of a replica that scales. It has one CPU for each 4 GiB, rounded up, and 8 CPUs for 28 GiB (option \`memoryPerCpu\` sets another ratio). Its name is e.g. \`16 GiB\`, for the source's \`machines\`. Without any of these fields, the source's \`defaults\` must name the machine |
| \`profile\` | another one than \`v1-default\` is a part of the machine's name, such as \`64 GiB v1-highmem-m\`. Its count of CPUs is unknown: the source's \`machines\` must give the shape |
| \`clickhouseVersion\` | the version; the engine is \`clickhouse\` |
| (nothing) | the disks: object storage has the data. There are none unless the source's \`defaults\` list some |`,

  async *clusters({ http, options }) {
    const { memoryPerCpu } = Options.parse(options ?? {});
    for (const organization of await organizationsOf(http)) {
      const path = `${ORGANIZATIONS}/${organization}/services`;
      let index = 0;
      for await (const row of rowsOf(http, path)) {
        index += 1;
        const key = labelIn(row, 'id', 'name') ?? `service ${index} of ${organization}`;
        yield clusterItem(key, () => described(parseRow(Service, row), organization, memoryPerCpu));
      }
    }
  },
};

async function organizationsOf(http: SourceHttp): Promise<ReadonlySet<string>> {
  const rows = await Array.fromAsync(rowsOf(http, ORGANIZATIONS));
  if (rows.length === 0) throw nothingListed(ORGANIZATIONS);
  return idsIn(ORGANIZATIONS, rows, Organization, ['result']);
}

async function* rowsOf(http: SourceHttp, path: string): AsyncGenerator<unknown, void> {
  const pages = pagesByToken(http, path, Page, {}, (page) => page.nextCursor, 'cursor');
  for await (const { data } of pages) yield* data.result;
}

function described(service: Service, organization: string, memoryPerCpu?: string): DescribedCluster {
  return {
    tenant: organization,
    key: service.id,
    name: service.name,
    provider: service.provider,
    region: { code: service.region },
    status: STATUS.get(service.state) ?? service.state,
    shards: 1,
    replicas: service.replicas,
    machine: machineOf(service, memoryPerCpu),
    software: softwareOf({ engine: 'clickhouse', version: service.clickhouseVersion }),
    createdAt: service.createdAt,
  };
}

/** "Gb" are GiB: ClickHouse sells them by the unit of 8 GiB and 2 CPUs. Only replicas of 28 GiB have another ratio. */
function machineOf(service: Service, memoryPerCpu?: string): DescribedCluster['machine'] {
  const { replicaMemory: gib, profile } = service;
  if (gib === undefined) return undefined;
  const ram = Math.ceil(gib);
  if (profile != null && profile !== STANDARD_PROFILE) return { name: `${ram} GiB ${profile}` };
  const cpu = memoryPerCpu === undefined && ram === 28 ? 8 : Math.ceil(ram / Number(memoryPerCpu ?? '4'));
  return { name: `${ram} GiB`, cpu, ram, ramUnit: 'Binary' };
}
