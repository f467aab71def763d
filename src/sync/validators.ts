import type { ConnectionDatabase } from '../db/connection/connect.ts';
import type { RejectedKey } from '../domain/rejected-rows.ts';
import type { ValidatorItem } from '../sources/source.ts';
import { regionsWithMissed, writeValidators } from './stored-validators.ts';

/** Returns true if the source has a single payload and it is unmodified. */
export function isUnmodified(validators: readonly ValidatorItem[]): boolean {
  return validators.some(({ kind, regionCode }) => kind === 'unmodified' && regionCode === undefined);
}

/** Returns the regions with an unmodified payload. Their stored rows stay. */
export function unmodifiedRegions(validators: readonly ValidatorItem[]): string[] {
  return validators.flatMap(({ kind, regionCode }) =>
    kind === 'unmodified' && regionCode !== undefined ? [regionCode] : [],
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
  const open = new Set<string | undefined>([
    ...rejected.map(({ regionCode }) => regionCode),
    ...(await regionsWithMissed(db, sourceId)),
  ]);
  // A row without a region may belong to any payload.
  const settled = validators.filter(({ regionCode }) =>
    regionCode === undefined ? open.size === 0 : !open.has(undefined) && !open.has(regionCode),
  );
  await writeValidators(
    db,
    sourceId,
    parseFingerprint,
    settled.map(({ validator }) => validator),
  );
}
