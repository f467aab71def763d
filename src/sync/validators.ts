/** What a run keeps of the validators of the payloads that it read. */

import type { SessionDatabase } from '../db/connection/connect.ts';
import { regionsWithMissed, writeValidators } from '../db/sync/validators.ts';
import type { RejectedKey } from '../domain/rejected-rows.ts';
import type { ValidatorItem } from '../sources/validator.ts';

/** Whether the source's only payload is the one that its stored rows come from. */
export function isUnmodified(validators: readonly ValidatorItem[]): boolean {
  return validators.some(({ kind, regionCode }) => kind === 'unmodified' && regionCode === undefined);
}

/** Regions whose payload is unmodified: their stored rows stay. */
export function unmodifiedRegions(validators: readonly ValidatorItem[]): string[] {
  return validators.flatMap(({ kind, regionCode }) =>
    kind === 'unmodified' && regionCode !== undefined ? [regionCode] : [],
  );
}

/**
 * Saves the validators of payloads that need not be read again while they are unmodified; called in the transaction that
 * stores their rows, after them. A payload with a rejected row is read again: the row may be usable by then (its
 * organization created, a limit raised). So is one in which a row is missed: it has to be missed several times.
 *
 * @param parseFingerprint see `storedValidators`; undefined saves none
 */
export async function saveValidators(
  db: SessionDatabase,
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
  // A row that names no region may be of any payload.
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
