import { z } from 'zod';
import type { DescribedCluster, ReportedMachine } from '../../domain/cluster.ts';
import {
  DiskRow,
  describedDisk,
  instant,
  memoryUnit,
  nameOfPerson,
  pathSegment,
} from '../cluster-document.ts';
import { nextLink } from '../http/link.ts';
import { count, countOrNone, currencyCode, label, quantity } from '../schema/fields.ts';
import { labelIn, readRow, rejectedRow } from '../schema/rows.ts';
import {
  type ClusterAdapter,
  type ClusterItem,
  type DocumentItem,
  type JsonAnswer,
  SourceError,
  type SourceHttp,
} from '../source.ts';

/** Many times what there is; an upstream that always has one more page is broken. */
const MOST_PAGES = 1000;

const Id = z.union([label, z.int().transform(String)], { error: 'must be text or a whole number' });

const SHAPE = ['cpu', 'ram', 'ram_unit'] as const;

/** A type's name, a shape, or both; a shape of which something is missing is no machine. */
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
      context.addIssue({
        code: 'custom',
        path: [field],
        message: 'is missing; a machine has a name, or cpu, ram and ram_unit',
      });
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
  created_at: instant,
});

const Document = z.preprocess(
  (document) => (Array.isArray(document) ? { clusters: document } : document),
  z.object({ clusters: z.array(z.unknown()), currency: currencyCode.default('USD') }),
);

/** Clusters in the form of Fleetbook's own API. */
export const adapter: ClusterAdapter = {
  id: 'json',
  endpoints: ['{url}'],
  readsFiles: true,
  credentials: 'bearer',
  schedule: '*/5 * * * *',
  notes: `Reads clusters in the form of this service's own \`/v1/clusters\`, each with its \`organization\` (a slug), and
optionally with an \`id\`, which identifies it for good, and a \`machine.name\`. \`organization\`, \`provider\`, \`region\`,
\`machine\` (which may also be a name alone), \`user\` and \`disks\` may be left out where the source's entry says them.
The document is a list, or \`{"clusters": […], "currency": "EUR"}\`, the currency being that of the disks' prices, which
are per minute; \`USD\` unless it is given. Pages are joined by \`Link: rel="next"\`. A list of one page that has not
changed since (\`ETag\`, \`Last-Modified\`) is not sent again. \`CLUSTERS_URL\`, \`CLUSTERS_TOKEN\` and \`CLUSTERS_SCHEDULE\`
configure one such source, named \`clusters\`, without a configuration file.`,

  async *clusters({ http }) {
    const seen = new Map<string, DescribedCluster | 'ambiguous'>();
    const unusable: ClusterItem[] = [];
    for await (const found of rows(http)) {
      if ('kind' in found) {
        unusable.push(found);
        continue;
      }
      const { row, index, currency } = found;
      const { value, reason } = readRow(Cluster, row);
      if (value === undefined) {
        unusable.push(
          rejectedRow(keyIn(row) ?? `cluster ${index + 1}`, reason, {
            organization: labelIn(row, 'organization'),
          }),
        );
        continue;
      }
      const cluster = described(value, currency);
      const own = JSON.stringify([cluster.organization ?? null, cluster.key]);
      const other = seen.get(own);
      // A page that shifts while it is read brings a row twice; two clusters of one key cannot be told apart.
      seen.set(
        own,
        other === undefined || JSON.stringify(other) === JSON.stringify(cluster) ? cluster : 'ambiguous',
      );
    }
    yield* unusable;
    for (const [own, cluster] of seen) {
      if (cluster !== 'ambiguous') {
        yield { kind: 'cluster', cluster };
        continue;
      }
      const [organization, key] = JSON.parse(own) as [string | null, string];
      yield rejectedRow(
        key,
        'another cluster of the organization has the same key; give each an id of its own',
        { organization: organization ?? undefined },
      );
    }
  },
};

/** The key that the row would have had. */
function keyIn(row: unknown): string | undefined {
  const { id } = z.object({ id: Id.optional() }).catch({}).parse(row);
  return id ?? labelIn(row, 'slug') ?? labelIn(row, 'name');
}

function described(row: z.infer<typeof Cluster>, currency: string): DescribedCluster {
  const { organization, name, slug, provider, region, user, machine, disks } = row;
  return {
    ...(organization == null ? {} : { organization }),
    key: row.id ?? slug ?? name,
    name,
    ...(slug == null ? {} : { slug }),
    ...(provider == null ? {} : { provider: provider.name }),
    ...(region == null ? {} : { region: { code: region.code, name: region.name } }),
    status: row.status,
    shards: row.shards,
    replicas: row.replicas,
    ...(user === undefined
      ? {}
      : { user: { firstName: user?.first_name ?? '', lastName: user?.last_name ?? '' } }),
    ...(machine == null ? {} : { machine }),
    ...(disks == null ? {} : { disks: disks.map((disk) => describedDisk(disk, currency)) }),
    createdAt: row.created_at,
  };
}

interface FoundRow {
  readonly row: unknown;
  readonly index: number;
  readonly currency: string;
}

/** A version only of a list of one page: of several, one that is unmodified says nothing of the others. */
async function* rows(http: SourceHttp): AsyncGenerator<FoundRow | DocumentItem> {
  const visited = new Set<string>();
  const asked = await http.jsonIfModified('', Document);
  if ('unmodified' in asked && nextLink(asked.headers.get('link')) === undefined) {
    yield { kind: 'unmodified', version: asked.unmodified };
    return;
  }
  let index = 0;
  let answer: JsonAnswer<z.infer<typeof Document>> =
    'unmodified' in asked ? await http.json('', Document) : asked;
  for (;;) {
    const { data, headers, url, version } = answer;
    visited.add(url.href);
    for (const row of data.clusters) yield { row, index: index++, currency: data.currency };
    const link = nextLink(headers.get('link'));
    if (link === undefined) {
      if (visited.size === 1 && version !== undefined) yield { kind: 'version', version };
      return;
    }
    if (!URL.canParse(link, url.href)) {
      throw new SourceError('invalid', 'the Link header names a next page that is no URL');
    }
    const next = new URL(link, url).href;
    if (visited.has(next) || visited.size >= MOST_PAGES) {
      throw new SourceError(
        'invalid',
        'the pages of clusters, joined by Link headers, do not come to an end',
      );
    }
    answer = await http.json(next, Document);
  }
}
