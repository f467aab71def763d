import { z } from 'zod';
import type { DescribedCluster } from '../../domain/cluster.ts';
import {
  clusterItem,
  DiskRow,
  describedDisk,
  instant,
  memoryUnit,
  nameOfPerson,
  pathSegment,
} from '../cluster-fields.ts';
import { asOfIn } from '../http/headers.ts';
import { count, countOrNone, currencyCode, label } from '../schema/fields.ts';
import { labelIn, parseRow } from '../schema/rows.ts';
import type { ClusterAdapter } from '../source.ts';

const CLUSTERS = '/v1/clusters';

const Options = z.strictObject({
  currency: currencyCode
    .default('USD')
    .describe("the other instance's `CATALOGUE_CURRENCY`, the currency of its disks; `USD` when absent"),
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

/** Another Fleetbook: the clusters of the token's organization. */
export const adapter: ClusterAdapter = {
  id: 'fleetbook',
  options: Options,
  endpoints: [CLUSTERS],
  readsFiles: false,
  credentials: 'bearer',
  schedule: '1-56/5 * * * *',
  notes: `Reads the clusters of one organization of another Fleetbook, with a token of that organization that has
\`clusters:read\`. Only the token names the organization: configure one source for each organization, and name it there as
\`organization\`. The slug is the cluster's key. Machines are found by their shape, since ids of the other instance mean
nothing here. An unchanged answer (\`ETag\`) is not sent again. The freshness is the one that the other instance states
(\`Fleetbook-As-Of\`): a gateway in between has to pass the header on. The list has neither engine nor version, so both
are unknown here.`,

  async *clusters({ http, options }) {
    const { currency } = Options.parse(options ?? {});
    const answer = await http.jsonIfModified(CLUSTERS, z.array(z.unknown()));
    yield { kind: 'as-of', time: asOfIn(answer.headers, CLUSTERS) };
    if ('unmodified' in answer) {
      yield { kind: 'unmodified', validator: answer.unmodified };
      return;
    }
    for (const [index, row] of answer.data.entries()) {
      const key = labelIn(row, 'slug', 'name') ?? `cluster ${index + 1}`;
      yield clusterItem(key, () => described(parseRow(Cluster, row), currency));
    }
    if (answer.validator !== undefined) yield { kind: 'validator', validator: answer.validator };
  },
};

function described(row: z.infer<typeof Cluster>, currency: string): DescribedCluster {
  const { user, machine, created_at: createdAt, ...same } = row;
  return {
    ...same,
    key: row.slug,
    provider: row.provider.name,
    user: { firstName: user.first_name, lastName: user.last_name },
    machine: { cpu: machine.cpu, ram: machine.ram, ramUnit: machine.ram_unit },
    disks: row.disks.map((disk) => describedDisk(disk, currency)),
    createdAt,
  };
}
