import { z } from 'zod';
import type { ReportedCluster } from '../../domain/cluster.ts';
import { amount, count, countOrNone, currencyCode, label, quantity } from '../fields.ts';
import { utcMicroseconds } from '../instant.ts';
import { nextLink } from '../link.ts';
import { labelIn, readRow, rejectedRow } from '../rows.ts';
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

const memoryUnit = z.enum(['Binary', 'Decimal'], { error: 'must be Binary or Decimal' });

/** Stands in a URL as it is, between two slashes. */
const slug = label.refine((text) => /^[A-Za-z0-9._~-]+$/.test(text) && !/^\.{1,2}$/.test(text), {
  error: 'must be made of letters, digits and - . _ ~',
});

const instant = z
  .string({ error: 'must be an instant such as 2022-02-14T10:11:26.567713' })
  .transform((text, context) => {
    const utc = utcMicroseconds(text);
    if (utc !== undefined) return utc;
    context.addIssue({ code: 'custom', message: 'must be an instant such as 2022-02-14T10:11:26.567713' });
    return z.NEVER;
  });

/** Part of a person's name; may be empty. */
const nameOfPerson = z.union([z.literal(''), label]).nullish();

const Disk = z.object({
  type: z.object({ name: label, price: amount, unit: memoryUnit }),
  size: quantity,
  unit: z.enum(['GB', 'TB', 'GiB', 'TiB'], { error: 'must be GB, TB, GiB or TiB' }),
  autoscaling: z.boolean(),
});

const Id = z.union([label, z.int().transform(String)], { error: 'must be text or a whole number' });

const Cluster = z.object({
  id: Id.nullish(),
  organization: slug,
  name: label,
  slug: slug.nullish(),
  region: z.object({ name: label, code: label }),
  provider: z.object({ name: label }),
  status: label,
  shards: countOrNone,
  replicas: countOrNone,
  user: z.object({ first_name: nameOfPerson, last_name: nameOfPerson }).nullish(),
  machine: z.object({ name: label.nullish(), cpu: count, ram: quantity, ram_unit: memoryUnit }),
  disks: z.array(Disk),
  created_at: instant,
});

const Document = z.preprocess(
  (document) => (Array.isArray(document) ? { clusters: document } : document),
  z.object({ clusters: z.array(z.unknown()), currency: currencyCode.default('USD') }),
);

/**
 * Clusters in the form of Fleetbook's own API, each with its `organization` (slug) and optionally an `id` and a
 * `machine.name`; a list, or `{"clusters": […], "currency": "EUR"}`. Disk prices are per minute. Pages are joined by
 * `Link: rel="next"`. Also reads a file.
 */
export const adapter: ClusterAdapter = {
  id: 'json',
  credentials: 'bearer',
  schedule: '*/5 * * * *',

  async *clusters({ http }) {
    const seen = new Map<string, ReportedCluster | 'ambiguous'>();
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
      const cluster = reported(value, currency);
      const own = JSON.stringify([cluster.organization, cluster.key]);
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
      const [organization = '', key = ''] = JSON.parse(own) as string[];
      yield rejectedRow(
        key,
        'another cluster of the organization has the same key; give each an id of its own',
        { organization },
      );
    }
  },
};

/** The key that the row would have had. */
function keyIn(row: unknown): string | undefined {
  const { id } = z.object({ id: Id.optional() }).catch({}).parse(row);
  return id ?? labelIn(row, 'slug') ?? labelIn(row, 'name');
}

function reported(cluster: z.infer<typeof Cluster>, currency: string): ReportedCluster {
  const { organization, name, region, machine, user } = cluster;
  return {
    organization,
    key: cluster.id ?? cluster.slug ?? name,
    name,
    ...(cluster.slug == null ? {} : { slug: cluster.slug }),
    provider: cluster.provider.name,
    region: { code: region.code, name: region.name },
    status: cluster.status,
    shards: cluster.shards,
    replicas: cluster.replicas,
    user: { firstName: user?.first_name ?? '', lastName: user?.last_name ?? '' },
    machine: {
      ...(machine.name == null ? {} : { name: machine.name }),
      cpu: machine.cpu,
      ram: machine.ram,
      ramUnit: machine.ram_unit,
    },
    disks: cluster.disks.map(({ type, size, unit, autoscaling }) => ({
      type: { name: type.name, price: { amount: type.price, per: 'minute', currency }, unit: type.unit },
      size,
      unit,
      autoscaling,
    })),
    createdAt: cluster.created_at,
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
