/** The regions that a batch has read, and their freshness. */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { type RejectedKey, unreadRegion } from '../../domain/rejected-rows.ts';
import { adoptMachines, regionsOfUnusableRows, stampRegions } from '../freshness.ts';
import { earlier } from '../pipeline.ts';
import type { StagedCatalogue } from './stage.ts';
import type { CatalogueSource } from './store.ts';

/** Returns the regions that the batch lists or that have offers, without those that could not be read. */
export function readRegions(
  { offered, unread }: StagedCatalogue,
  regions: ReadonlyMap<string, string>,
): ReadonlySet<string> {
  return new Set([...regions.keys(), ...offered]).difference(unread);
}

/**
 * Stamps the regions that the batch has read: those that it lists or that have offers. Regions that could not be read, and
 * regions without a usable row, get no stamp.
 * @param regions code → name, including unmodified ones @param readAt RFC 3339
 * @returns the regions without a usable row, as rows of the quarantine
 */
export async function stampRead(
  db: ConnectionDatabase,
  source: CatalogueSource,
  staged: StagedCatalogue,
  regions: ReadonlyMap<string, string>,
  rejected: readonly RejectedKey[],
  readAt: string,
): Promise<RejectedKey[]> {
  const { unread, asOf } = staged;
  const reported = readRegions(staged, regions);
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
