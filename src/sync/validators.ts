/** Validators of payloads: a source that answers "not modified" is not read again. */
import type { ConnectionDatabase, Database } from '../db/connection/connect.ts';
import { alias, and, eq, gt, inArray, notExists, or, sql } from '../db/connection/drizzle.ts';
import { array, insertInto, nameOf, notRetired } from '../db/connection/statements.ts';
import { clusters, machines, regions, sourceValidators } from '../db/schema.ts';
import type { RejectedKey } from '../domain/rejected-rows.ts';
import type { ValidatorItem } from '../sources/source.ts';

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

/** Returns true if the source has a single payload and it is unmodified. */
export function isUnmodified(validators: readonly ValidatorItem[]): boolean {
  return validators.some(({ kind, regionCode }) => kind === 'unmodified' && regionCode === undefined);
}

/** Returns the regions with an unmodified payload. Their stored rows stay. @param rows undefined: of machines */
export function unmodifiedRegions(
  validators: readonly ValidatorItem[],
  rows?: ValidatorItem['of'],
): string[] {
  return validators.flatMap(({ kind, regionCode, of }) =>
    kind === 'unmodified' && regionCode !== undefined && of === rows ? [regionCode] : [],
  );
}

/**
 * Stores validators, in the transaction that stores the rows and after them. Two kinds of payloads get none and are read
 * again: one with a rejected row, which may become usable (a new organization, a higher limit), and one with a missing row,
 * which is retired only after several runs.
 *
 * @param parseFingerprint see `storedValidators`; undefined stores none
 */
export async function saveValidators(
  db: ConnectionDatabase,
  sourceId: string,
  parseFingerprint: string | undefined,
  validators: readonly ValidatorItem[],
  rejected: readonly RejectedKey[],
): Promise<void> {
  if (parseFingerprint === undefined || validators.length === 0) {
    await writeValidators(db, sourceId, '', []);
    return;
  }
  const missed = await regionsWithMissed(db, sourceId);
  const openOf = (rows: ValidatorItem['of']) => {
    const regionCodes = rejected.filter(({ of }) => of === rows).map(({ regionCode }) => regionCode);
    return new Set<string | undefined>(rows === undefined ? [...regionCodes, ...missed] : regionCodes);
  };
  const [openMachines, openPlans] = [openOf(undefined), openOf('database_plan')];
  // A row without a region may belong to any payload.
  const settled = validators.filter(({ regionCode, of }) => {
    const open = of === undefined ? openMachines : openPlans;
    return regionCode === undefined ? open.size === 0 : !open.has(undefined) && !open.has(regionCode);
  });
  await writeValidators(
    db,
    sourceId,
    parseFingerprint,
    settled.map(({ validator }) => validator),
  );
}

/** Replaces the validators of a source. An unused one must go: its payload may return when the stored rows have another. */
async function writeValidators(
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
async function regionsWithMissed(db: ConnectionDatabase, sourceId: string): Promise<string[]> {
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
