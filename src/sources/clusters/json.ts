import { z } from 'zod';
import type { DescribedCluster, ReportedMachine } from '../../domain/cluster.ts';
import {
  DiskRow,
  describedDisk,
  instant,
  memoryUnit,
  nameOfPerson,
  pathSegment,
  softwareEnd,
  softwareOf,
  softwareText,
} from '../cluster-fields.ts';
import { nextLink } from '../http/headers.ts';
import { pagesOf } from '../http/lists.ts';
import { count, countOrNone, currencyCode, invalid, label, quantity } from '../schema/fields.ts';
import { rejectedRow } from '../schema/items.ts';
import { labelIn, readRow } from '../schema/rows.ts';
import { badAnswer, type ClusterAdapter, type SourceHttp, type ValidatorItem } from '../source.ts';

const Id = z.union([label, z.int().transform(String)], { error: 'must be text or a whole number' });

const SHAPE = ['cpu', 'ram', 'ram_unit'] as const;

const Machine = z
  .object({
    name: label.nullish(),
    cpu: count.nullish(),
    ram: quantity.nullish(),
    ram_unit: memoryUnit.nullish(),
  })
  .transform(({ name, cpu, ram, ram_unit: ramUnit }, context): ReportedMachine => {
    if (cpu != null && ram != null && ramUnit != null)
      return { ...(name == null ? {} : { name }), cpu, ram, ramUnit };
    const given = { cpu, ram, ram_unit: ramUnit };
    const missing = SHAPE.filter((field) => given[field] == null);
    if (name != null && missing.length === SHAPE.length) return { name };
    for (const field of missing)
      invalid(context, 'is missing; a machine has a name, or cpu, ram and ram_unit', field);
    return z.NEVER;
  });

const Cluster = z.object({
  id: Id.nullish(),
  organization: pathSegment.nullish(),
  name: label,
  slug: pathSegment.nullish(),
  region: z.object({ name: label, code: label }).nullish(),
  provider: z.object({ name: label }).nullish(),
  status: label,
  shards: countOrNone,
  replicas: countOrNone,
  user: z.object({ first_name: nameOfPerson.nullish(), last_name: nameOfPerson.nullish() }).nullish(),
  machine: Machine.nullish(),
  disks: z.array(DiskRow).nullish(),
  engine: softwareText,
  version: softwareText,
  end_of_life: softwareEnd,
  created_at: instant,
});

const Payload = z.preprocess(
  (payload) => (Array.isArray(payload) ? { clusters: payload } : payload),
  z.object({ clusters: z.array(z.unknown()), currency: currencyCode.default('USD') }),
);

export const adapter: ClusterAdapter = {
  id: 'json',
  endpoints: ['{url}'],
  readsFiles: true,
  credentials: 'bearer',
  schedule: '*/5 * * * *',
  notes: `Reads clusters in the form of Fleetbook's \`/v1/clusters\`, each with its \`organization\` (a slug). A cluster may also
have an \`id\`, its permanent key, a \`machine.name\`, and \`engine\`, \`version\` and \`end_of_life\` (the date when the
provider ends its support of that version). \`organization\`, \`provider\`, \`region\`, \`machine\` (or only its
name), \`user\` and \`disks\` are optional if the source's entry states them. The payload is a list, or
\`{"clusters": […], "currency": "EUR"}\` with the currency of the disks' prices per minute (default \`USD\`). Pages are joined
by \`Link: rel="next"\`. An unchanged list of one page (\`ETag\`, \`Last-Modified\`) is not sent again. \`CLUSTERS_URL\`,
\`CLUSTERS_TOKEN\`, \`CLUSTERS_SCHEDULE\` and \`CLUSTERS_MAX_AGE\` configure one such source, named \`clusters\`, without a
configuration file.`,

  async *clusters({ http }) {
    // Pages may shift during the run: an equal row is the same cluster. Other rows with the same key are ambiguous.
    const byKey = new Map<string, Map<string, DescribedCluster>>();
    for await (const found of rows(http)) {
      if ('kind' in found) {
        yield found;
        continue;
      }
      const { row, index, currency } = found;
      const { value, reason } = readRow(Cluster, row);
      if (value === undefined) {
        const organization = labelIn(row, 'organization');
        yield rejectedRow(keyIn(row) ?? `cluster ${index + 1}`, reason, { organization });
        continue;
      }
      const cluster = described(value, currency);
      const key = JSON.stringify([cluster.organization, cluster.key]);
      const known = byKey.get(key) ?? new Map<string, DescribedCluster>();
      byKey.set(key, known.set(JSON.stringify(cluster), cluster));
    }
    for (const known of byKey.values()) {
      const [cluster, other] = known.values();
      if (cluster === undefined) continue;
      const { key, organization } = cluster;
      const problem = 'another cluster of the organization has the same key; give each cluster its own id';
      yield other === undefined ? { kind: 'cluster', cluster } : rejectedRow(key, problem, { organization });
    }
  },
};

function keyIn(row: unknown): string | undefined {
  const { id } = z.object({ id: Id.optional() }).catch({}).parse(row);
  return id ?? labelIn(row, 'slug', 'name');
}

function described(row: z.infer<typeof Cluster>, currency: string): DescribedCluster {
  const { organization, name, slug, status, shards, replicas, user, machine, disks } = row;
  return {
    organization: organization ?? undefined,
    key: row.id ?? slug ?? name,
    name,
    slug: slug ?? undefined,
    provider: row.provider?.name,
    region: row.region ?? undefined,
    status,
    shards,
    replicas,
    // Null states that there is no creator.
    user:
      user === undefined ? undefined : { firstName: user?.first_name ?? '', lastName: user?.last_name ?? '' },
    machine: machine ?? undefined,
    disks: disks?.map((disk) => describedDisk(disk, currency)),
    software: softwareOf({ engine: row.engine, version: row.version, endOfLife: row.end_of_life }),
    createdAt: row.created_at,
  };
}

/** Yields a validator only for a list of one page: the validator of a first page does not cover the others. */
async function* rows(
  http: SourceHttp,
): AsyncGenerator<
  ValidatorItem | { readonly row: unknown; readonly index: number; readonly currency: string }
> {
  const answer = await http.jsonIfModified('', Payload);
  if ('unmodified' in answer && nextLink(answer.headers.get('link')) === undefined) {
    yield { kind: 'unmodified', validator: answer.unmodified };
    return;
  }
  const first = 'unmodified' in answer ? await http.json('', Payload) : answer;
  const path = http.base.origin + http.base.pathname;
  const pages = pagesOf(
    path,
    http.base.href,
    async (address) => (address === http.base.href ? first : http.json(address, Payload)),
    ({ headers, url }) => {
      const link = nextLink(headers.get('link'));
      if (link === undefined) return undefined;
      if (URL.canParse(link, url.href)) return new URL(link, url).href;
      throw badAnswer(`${path}: the Link header names a next page that is no URL`);
    },
  );
  let [index, count] = [0, 0];
  for await (const { data } of pages) {
    count += 1;
    for (const row of data.clusters) yield { row, index: index++, currency: data.currency };
  }
  if (count === 1 && first.validator !== undefined) yield { kind: 'validator', validator: first.validator };
}
