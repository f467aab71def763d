import { z } from 'zod';
import type { DescribedCluster } from '../../domain/cluster.ts';
import { DiskRow, describedDisk, instant, memoryUnit, nameOfPerson, pathSegment } from '../cluster-fields.ts';
import { asOfIn } from '../http/as-of.ts';
import { count, countOrNone, currencyCode, label } from '../schema/fields.ts';
import { labelIn, readRow, rejectedRow } from '../schema/rows.ts';
import type { ClusterAdapter } from '../source.ts';

const CLUSTERS = '/v1/clusters';

const Options = z.strictObject({
  currency: currencyCode
    .default('USD')
    .describe("the other instance's `CATALOGUE_CURRENCY`, in which its disks are priced; `USD` when absent"),
});

const Cluster = z.object({
  name: label,
  slug: pathSegment,
  region: z.object({ name: label, code: label }),
  provider: z.object({ name: label }),
  status: label,
  shards: countOrNone,
  replicas: countOrNone,
  user: z.object({ first_name: nameOfPerson, last_name: nameOfPerson }),
  machine: z.object({ cpu: count, ram: count, ram_unit: memoryUnit }),
  disks: z.array(DiskRow),
  created_at: instant,
});

/** Another instance of this service: the clusters of the organization that its token belongs to. */
export const adapter: ClusterAdapter = {
  id: 'fleetbook',
  options: Options,
  endpoints: [CLUSTERS],
  readsFiles: false,
  credentials: 'bearer',
  schedule: '1-56/5 * * * *',
  notes: `Reads the clusters of one organization of another instance, with a token of that organization that has
\`clusters:read\`. The token says which organization it is, the answer does not: give each one a source of its own, and
name it there as \`organization\`. Slugs are kept, and tell the clusters apart. Machines are found by their shape, since
ids of the other instance mean nothing here and names it does not give. An answer that has not changed since (\`ETag\`)
is not sent again. Data is as old as the other instance says (\`Fleetbook-As-Of\`), not as its reading: a gateway in
between has to let the header through.`,

  async *clusters({ http, options }) {
    const { currency } = Options.parse(options ?? {});
    const answer = await http.jsonIfModified(CLUSTERS, z.array(z.unknown()));
    yield { kind: 'as-of', time: asOfIn(answer.headers, CLUSTERS) };
    if ('unmodified' in answer) {
      yield { kind: 'unmodified', validator: answer.unmodified };
      return;
    }
    for (const [index, row] of answer.data.entries()) {
      const { value, reason } = readRow(Cluster, row);
      if (value === undefined) {
        const key = labelIn(row, 'slug') ?? labelIn(row, 'name') ?? `cluster ${index + 1}`;
        yield rejectedRow(key, reason, {});
        continue;
      }
      yield { kind: 'cluster', cluster: described(value, currency) };
    }
    if (answer.validator !== undefined) yield { kind: 'validator', validator: answer.validator };
  },
};

function described(row: z.infer<typeof Cluster>, currency: string): DescribedCluster {
  const { name, slug, region, provider, status, shards, replicas, user, machine } = row;
  return {
    key: slug,
    name,
    slug,
    provider: provider.name,
    region: { code: region.code, name: region.name },
    status,
    shards,
    replicas,
    user: { firstName: user.first_name, lastName: user.last_name },
    machine: { cpu: machine.cpu, ram: machine.ram, ramUnit: machine.ram_unit },
    disks: row.disks.map((disk) => describedDisk(disk, currency)),
    createdAt: row.created_at,
  };
}
