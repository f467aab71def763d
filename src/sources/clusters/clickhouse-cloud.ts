import { z } from 'zod';
import type { DescribedCluster } from '../../domain/cluster.ts';
import { instant, pathSegment } from '../cluster-fields.ts';
import { nothingListed } from '../http/listing.ts';
import { pagesByToken } from '../http/pages.ts';
import { count, label, omittedAtEnd, quantity } from '../schema/fields.ts';
import { labelIn, readRow, rejectedRow } from '../schema/rows.ts';
import { type ClusterAdapter, SourceError, type SourceHttp } from '../source.ts';

const ORGANIZATIONS = '/v1/organizations';

/** The states that have the same word in every control plane. `idle` has none: the next query wakes the service. */
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
      'GiB of memory that a replica has for each CPU, since the API states no CPUs; `4` when absent, but 8 CPUs for 28 GiB',
    ),
});

/** Every page of organizations has a cursor, as the vendor documents: null on the last one. */
const OrganizationPage = z.object({ result: z.array(z.unknown()), nextCursor: z.string().nullable() });
/** The vendor documents no pages of services. A cursor that comes is followed. */
const ServicePage = z.object({ result: z.array(z.unknown()), nextCursor: omittedAtEnd });
type Page = z.infer<typeof OrganizationPage>;
const Organization = z.object({ id: pathSegment });

/** As in the vendor's OpenAPI description. What is nullish here is optional there. */
const Service = z
  .object({
    id: label,
    name: label,
    provider: label,
    region: label,
    state: label,
    numReplicas: count.nullish(),
    /** In place of `numReplicas` where the number of replicas scales. */
    minReplicas: count.nullish(),
    minReplicaMemoryGb: quantity.nullish(),
    /** In place of a range where the number of replicas scales. */
    replicaMemoryGb: quantity.nullish(),
    /** Of all replicas; deprecated, since the vendor calls it inaccurate where there are not three of them. */
    minTotalMemoryGb: quantity.nullish(),
    createdAt: instant,
  })
  .transform(({ numReplicas, minReplicas, ...service }, context) => {
    const replicas = numReplicas ?? minReplicas;
    const { minReplicaMemoryGb, replicaMemoryGb, minTotalMemoryGb } = service;
    if (replicas != null) {
      const share = minTotalMemoryGb == null ? undefined : minTotalMemoryGb / replicas;
      return { ...service, replicas, replicaMemory: minReplicaMemoryGb ?? replicaMemoryGb ?? share };
    }
    const message = 'is missing, and so is minReplicas; one of them must be a whole number above 0';
    context.addIssue({ code: 'custom', path: ['numReplicas'], message });
    return z.NEVER;
  });

/** The services of ClickHouse's own cloud. */
export const adapter: ClusterAdapter = {
  id: 'clickhouse-cloud',
  options: Options,
  baseUrl: 'https://api.clickhouse.cloud',
  endpoints: [ORGANIZATIONS, `${ORGANIZATIONS}/{organization}/services`],
  readsFiles: false,
  credentials: 'basic',
  schedule: '3-58/5 * * * *',
  notes: `The token is an API key's \`id:secret\`; a key sees the one organization that it belongs to. That organization's id is
the tenant, for the source's \`organizations\`.

| of ClickHouse Cloud | becomes |
|---|---|
| \`id\` | what identifies the cluster |
| \`state\` | \`running\` is \`Active\`, \`stopped\` is \`Stopped\`, \`provisioning\` is \`Creating\`, \`degraded\` is \`Degraded\`, \`terminating\` is \`Terminating\`; others, such as \`idle\`, stay as they are |
| (nothing) | 1 shard: storage is shared, and every replica has all of the data |
| \`numReplicas\`, else \`minReplicas\` | the replicas |
| \`minReplicaMemoryGb\`, else \`replicaMemoryGb\`, else \`minTotalMemoryGb\` divided by the replicas | the machine: so many GiB, rounded up, which is what a replica always has while it scales, with one CPU for each 4 of them, rounded up, and 8 CPUs for 28 GiB (another ratio: option \`memoryPerCpu\`). Its name is \`16 GiB\`, to be used in the source's \`machines\`; without any of these fields, the source's \`defaults\` have to say the machine |
| (nothing) | the disks: data lies in object storage. There are none unless the source's \`defaults\` list some |`,

  async *clusters({ http, options }) {
    const { memoryPerCpu } = Options.parse(options ?? {});
    for (const organization of await organizationsOf(http)) {
      const path = `${ORGANIZATIONS}/${organization}/services`;
      let index = 0;
      for await (const row of rowsOf(http, path, ServicePage)) {
        index += 1;
        const { value, reason } = readRow(Service, row);
        if (value === undefined) {
          const key = labelIn(row, 'id') ?? labelIn(row, 'name') ?? `service ${index} of ${organization}`;
          yield rejectedRow(key, reason, {});
          continue;
        }
        yield { kind: 'cluster', cluster: described(value, organization, memoryPerCpu) };
      }
    }
  },
};

async function organizationsOf(http: SourceHttp): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  let index = 0;
  for await (const row of rowsOf(http, ORGANIZATIONS, OrganizationPage)) {
    const { value, reason } = readRow(Organization, row, ['result', index++]);
    // Without its id it is not known which clusters must not count as missing.
    if (value === undefined) throw new SourceError('invalid', `${ORGANIZATIONS}: ${reason}`);
    found.add(value.id);
  }
  if (found.size === 0) throw nothingListed(ORGANIZATIONS);
  return found;
}

async function* rowsOf(
  http: SourceHttp,
  path: string,
  schema: z.ZodType<Page>,
): AsyncGenerator<unknown, void> {
  const pages = pagesByToken(http, path, schema, {}, (page) => page.nextCursor, 'cursor');
  for await (const { data } of pages) yield* data.result;
}

function described(
  service: z.infer<typeof Service>,
  organization: string,
  memoryPerCpu: string | undefined,
): DescribedCluster {
  return {
    tenant: organization,
    key: service.id,
    name: service.name,
    provider: service.provider,
    region: { code: service.region },
    status: STATUS.get(service.state) ?? service.state,
    shards: 1,
    replicas: service.replicas,
    ...machineOf(service.replicaMemory, memoryPerCpu),
    createdAt: service.createdAt,
  };
}

/** CPUs of a replica by its GiB, for sizes with another ratio than 1 to 4. */
const CPUS: ReadonlyMap<number, number> = new Map([[28, 8]]);

/** "Gb" are GiB: ClickHouse sells them by the unit of 8 GiB and 2 CPUs. */
function machineOf(
  gib: number | undefined,
  memoryPerCpu: string | undefined,
): Pick<DescribedCluster, 'machine'> {
  if (gib === undefined) return {};
  const ram = Math.ceil(gib);
  const known = memoryPerCpu === undefined ? CPUS.get(ram) : undefined;
  const cpu = known ?? Math.ceil(ram / Number(memoryPerCpu ?? '4'));
  return { machine: { name: `${ram} GiB`, cpu, ram, ramUnit: 'Binary' } };
}
