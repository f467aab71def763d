/** Freshness of the regions that a run has read. */

import type { SessionDatabase } from '../../db/connection/connect.ts';
import type { CatalogueSource } from '../../db/sync/catalogue/write.ts';
import { adoptMachines, regionsOfUnusableRows, stampRegions } from '../../db/sync/freshness.ts';
import { type RejectedKey, unreadRegion } from '../../domain/rejected-rows.ts';
import { earlier } from '../pipeline.ts';
import type { StagedCatalogue } from './stage.ts';

/** A good batch, after it was stored. */
export interface StoredBatch extends Pick<StagedCatalogue, 'offered' | 'unread' | 'asOf'> {
  /** Code → name, those whose stored rows stand included. */
  readonly regions: ReadonlyMap<string, string>;
  readonly rejected: readonly RejectedKey[];
  /** RFC 3339. */
  readonly readAt: string;
}

/**
 * Stamps the regions that the batch has read: those that it lists or has offers of, without the unread ones and without
 * those of which every row was rejected.
 * @returns the latter, as rows of the quarantine
 */
export async function stampRead(
  db: SessionDatabase,
  source: CatalogueSource,
  { regions, offered, unread, asOf, rejected, readAt }: StoredBatch,
): Promise<RejectedKey[]> {
  const reported = new Set([...regions.keys(), ...offered]).difference(unread);
  const unusable = new Set(await regionsOfUnusableRows(db, source, reported, rejected));
  const read = [...reported.difference(unusable)];
  await adoptMachines(db, source);
  await stampRegions(db, source, {
    times: new Map(read.map((code) => [code, earlier(readAt, asOf.get(code))])),
    unread: [...unread.keys(), ...unusable],
    at: readAt,
  });
  return [...unusable].map((code) => {
    const example = rejected.find(({ regionCode }) => regionCode === code);
    const why = example === undefined ? '' : `, e.g. ${example.key}: ${example.reason}`;
    return unreadRegion(code, `none of its rows can be used${why}`);
  });
}
