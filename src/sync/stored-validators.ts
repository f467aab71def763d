/** Validators of payloads, and stored rows of sources that answer "not modified". */
import type { ConnectionDatabase, Database } from '../db/connection/connect.ts';
import { alias, and, eq, gt, inArray, notExists, or, sql } from '../db/connection/drizzle.ts';
import { array, inCatalogue, insertInto, nameOf, notRetired } from '../db/connection/statements.ts';
import { factsOf } from '../db/machine-facts.ts';
import { clusters, machines, regions, sourceValidators } from '../db/schema.ts';
import { stagedOffers } from './staged.ts';

/** See `Validator` in sources/source.ts. */
interface StoredValidator {
  readonly url: string;
  readonly etag?: string;
  readonly lastModified?: string;
}

/**
 * Returns the validators for requests, by URL. Returns none if the same payloads would result in other rows: for clusters whose
 * machine or region was in no catalogue, or whose machine has another size now.
 * @param parseFingerprint see `parseFingerprintOf` in run-source.ts; validators under another one do not count
 */
export async function storedValidators(
  db: Database,
  sourceId: string,
  parseFingerprint: string,
): Promise<ReadonlyMap<string, StoredValidator>> {
  const v = sourceValidators;
  const outdated = db
    .select({ id: clusters.id })
    .from(clusters)
    .innerJoin(machines, eq(machines.id, clusters.machineId))
    .innerJoin(regions, eq(regions.id, clusters.regionId))
    .where(sql`${notRetired(clusters, sourceId)} and (${machines.excludedReason} = 'unlisted'
      or ${regions.organizationId} is not null or ${clusters.sourceHash} = '')`);
  const rows = await db
    .select({ url: v.url, etag: v.etag, lastModified: v.lastModified })
    .from(v)
    .where(and(eq(v.sourceId, sourceId), eq(v.parseFingerprint, parseFingerprint), notExists(outdated)));
  return new Map(
    rows.map(({ url, etag, lastModified }) => [
      url,
      { url, ...(etag === null ? {} : { etag }), ...(lastModified === null ? {} : { lastModified }) },
    ]),
  );
}

/** Replaces the validators of a source. An unused one must go: its payload may return when the stored rows have another. */
export async function writeValidators(
  db: ConnectionDatabase,
  sourceId: string,
  parseFingerprint: string,
  validators: readonly StoredValidator[],
): Promise<void> {
  const v = sourceValidators;
  const byUrl = new Map(validators.map((validator) => [validator.url, validator]));
  const urls = array([...byUrl.keys()], 'text');
  await db.delete(v).where(sql`${v.sourceId} = ${sourceId} and not ${v.url} = any(${urls})`);
  if (byUrl.size === 0) return;
  const etags = [...byUrl.values()].map(({ etag }) => etag ?? null);
  const modified = [...byUrl.values()].map(({ lastModified }) => lastModified ?? null);
  const given = alias(v, 'excluded');
  await db.execute(sql`
    ${insertInto(v, {
      sourceId,
      url: sql`w.url`,
      etag: sql`w.etag`,
      lastModified: sql`w.last_modified`,
      parseFingerprint,
    })}
    from unnest(${urls}, ${array(etags, 'text')}, ${array(modified, 'text')}) w (url, etag, last_modified)
    on conflict (${nameOf(v.sourceId)}, ${nameOf(v.url)}) do update
    set ${nameOf(v.etag)} = ${given.etag}, ${nameOf(v.lastModified)} = ${given.lastModified},
      ${nameOf(v.parseFingerprint)} = ${given.parseFingerprint}
    where (${v.etag}, ${v.lastModified}, ${v.parseFingerprint})
      is distinct from (${given.etag}, ${given.lastModified}, ${given.parseFingerprint})`);
}

/** Returns the codes of regions with missed rows that are not retired yet. The next run has to read them. */
export async function regionsWithMissed(db: ConnectionDatabase, sourceId: string): Promise<string[]> {
  const missedIn = (t: typeof machines | typeof clusters) =>
    db
      .select({ id: t.regionId })
      .from(t)
      .where(and(notRetired(t, sourceId), gt(t.missedRuns, 0)));
  const rows = await db
    .selectDistinct({ code: regions.code })
    .from(regions)
    .where(or(inArray(regions.id, missedIn(machines)), inArray(regions.id, missedIn(clusters))));
  return rows.map(({ code }) => code);
}

export async function countStored(db: ConnectionDatabase, sourceId: string): Promise<number> {
  const ofMachines = await db.$count(machines, notRetired(machines, sourceId));
  return ofMachines + (await db.$count(clusters, notRetired(clusters, sourceId)));
}

export async function storedRegions(
  db: ConnectionDatabase,
  providerId: number,
  codes: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await db
    .select({ code: regions.code, name: regions.name })
    .from(regions)
    .where(and(inCatalogue(regions, providerId), inArray(regions.code, [...codes])));
  return new Map(rows.map(({ code, name }) => [code, name]));
}

/** Stages the stored machines of these regions, as if the source had reported them. Returns their number. */
export async function stageStored(
  db: ConnectionDatabase,
  sourceId: string,
  regionCodes: readonly string[],
): Promise<number> {
  const { name, cpu, ram, ramUnit, sourceAmount, sourcePer, sourceCurrency, price } = machines;
  const staged = await db.execute(sql`
    ${insertInto(stagedOffers, {
      regionCode: regions.code,
      name,
      cpu,
      ram,
      ramUnit,
      sourceAmount,
      sourcePer,
      sourceCurrency,
      price,
      excludedReason: sql`nullif(${machines.excludedReason}, 'no_exchange_rate')`,
      terms: machines.terms,
      ...factsOf(machines),
    })}
    from ${machines} join ${regions} on ${regions.id} = ${machines.regionId}
    where ${notRetired(machines, sourceId)} and ${sourceAmount} is not null
      and ${regions.code} = any(${array(regionCodes, 'text')})`);
  return staged.count;
}
