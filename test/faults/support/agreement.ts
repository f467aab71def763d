/** Compares PostgreSQL, the cache and the API: every document, the regions of machines and the ages. */
import type { Store } from '../../../src/db/connection/connect.ts';
import { readLineage } from '../../../src/db/lineage.ts';
import { allVersions } from '../../../src/db/versions.ts';
import { documentsOfRow, type RowName } from '../../../src/domain/document-name.ts';
import type { RedisClient } from '../../../src/redis/redis.ts';
import { CacheKeys, documentId } from '../../../src/snapshot/document/keys.ts';
import { loadContent, loadFreshness } from '../../../src/snapshot/document/load.ts';
import { compareDocument } from '../../../src/snapshot/publish/compare-document.ts';

export interface Agreeing {
  /** Acts as the worker. */
  readonly store: Store;
  /** Opened with `withFence`. */
  readonly cache: RedisClient;
  readonly readers: readonly { readonly name: string; readonly url: string }[];
  /** Tokens by organization, for machines and clusters. At least one if there are readers. */
  readonly tokens: ReadonlyMap<number, string>;
}

/** Regions and organizations that are compared concurrently. */
const AT_ONCE = 8;
/** Single machines of each region that each reader must return. They are slices of one document. */
const MACHINES_OF_REGION = 3;

/**
 * Compares each document in PostgreSQL with the cache and with the answers of each reader, byte for byte. Also compares the
 * regions of machines of the cache and the age of the data. No process may write during the comparison.
 * @returns a line for each difference
 */
export async function disagreements(of: Agreeing): Promise<string[]> {
  const names: { name: RowName; version: number }[] = [];
  for await (const batch of allVersions(of.store.db, 500)) names.push(...batch);
  const keys = new CacheKeys(await readLineage(of.store.sql));
  const found: string[] = [];
  const queue = names.values();
  const next = async () => {
    for (const { name, version } of queue) {
      for (const document of documentsOfRow(name)) {
        const expected = { name: document, version, publishedVersion: version };
        const { verdict, cached } = await compareDocument(of.store.sql, of.cache, keys, expected);
        if (verdict !== 'same')
          found.push(`cache: ${documentId(document)} is ${verdict}: ${cached}, and ${version} in PostgreSQL`);
      }
      for (const reader of of.readers) found.push(...(await differencesOf(of, reader, name)));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  return [...found, ...(await indexDifferences(of, keys)), ...(await ageDifferences(of, keys))];
}

async function differencesOf(
  { store, tokens }: Agreeing,
  { name: reader, url }: Agreeing['readers'][number],
  name: RowName,
): Promise<string[]> {
  const token = name.kind === 'clusters' ? tokens.get(name.organizationId) : tokens.values().next().value;
  if (token === undefined || name.kind === 'token') return [];
  const truth = await loadContent(store.sql, name);
  if (!truth) return [];
  const fetchPath = async (path: string) => {
    const response = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } });
    return { status: response.status, body: Buffer.from(await response.arrayBuffer()) };
  };
  const differing = async (path: string, wanted: Buffer) => {
    const { status, body } = await fetchPath(path);
    if (status === 200 && body.equals(wanted)) return [];
    const size = `${body.length} bytes, and ${wanted.length} in PostgreSQL`;
    return [`reader ${reader}: ${path} is ${status === 200 ? `another body: ${size}` : status}`];
  };
  const found = await differing(await pathOf(store, name), truth.body);
  if (name.kind !== 'region') return found;
  const places = [...truth.index];
  const step = Math.max(1, Math.ceil(places.length / MACHINES_OF_REGION));
  for (const [id, [from, to]] of places.filter((_, i) => i % step === 0))
    found.push(...(await differing(`/v1/machines/${id}`, truth.body.subarray(from, to))));
  return found;
}

async function pathOf({ sql }: Store, name: Exclude<RowName, { kind: 'token' }>): Promise<string> {
  if (name.kind === 'providers') return '/v1/providers';
  if (name.kind === 'clusters') return '/v1/clusters';
  const [region] = await sql<{ provider: number }[]>`
    select provider_id as provider from regions where id = ${name.regionId}`;
  return `/v1/machines?provider=${region?.provider}&region=${name.regionId}`;
}

/** Returns published machines that the index does not have in their region. */
async function indexDifferences({ store, cache }: Agreeing, keys: CacheKeys): Promise<string[]> {
  const machines = await store.sql<{ id: number; region: number }[]>`
    select m.id, m.region_id as region from machines m join regions r on r.id = m.region_id
    where r.organization_id is null and m.excluded_reason is null and m.retired_at is null`;
  const buckets = new Map<string, Record<string, string>>();
  const found: string[] = [];
  for (const { id, region } of machines) {
    const key = keys.machineRegions(id);
    const bucket = buckets.get(key) ?? (await cache.hgetall(key));
    buckets.set(key, bucket);
    if (bucket[id] !== String(region))
      found.push(`cache: machine ${id} is in region ${bucket[id]}, and in ${region} in PostgreSQL`);
  }
  return found;
}

async function ageDifferences({ store, cache }: Agreeing, keys: CacheKeys): Promise<string[]> {
  const cached = await cache.hgetall(keys.stamps);
  return [...(await loadFreshness(store.sql))].flatMap(([id, stamp]) =>
    cached[id] === stamp ? [] : [`cache: ${id} is of ${cached[id]}, and of ${stamp} in PostgreSQL`],
  );
}
