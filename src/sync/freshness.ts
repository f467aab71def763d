/** How old what a run has read is. */

import type { SessionSql } from '../db/connect.ts';
import type { CatalogueSource } from '../db/queries/catalogue-write.ts';
import { adoptMachines, regionsOfUnusableRows, stampRegions } from '../db/queries/freshness.ts';
import { type RejectedKey, unreadRegion } from '../db/queries/rejected.ts';
import type { Fetched } from './stage.ts';

/** The earlier of two instants, RFC 3339; the second may not be known. */
export function earlier(one: string, other: string | undefined): string {
  return other !== undefined && Date.parse(other) < Date.parse(one) ? other : one;
}

/** A good batch, after it was stored. */
export interface StoredBatch extends Pick<Fetched, 'offered' | 'unread' | 'asOf'> {
  /** Code → name, those whose stored rows stand included. */
  readonly regions: ReadonlyMap<string, string>;
  readonly rejected: readonly RejectedKey[];
  /** RFC 3339. */
  readonly readAt: string;
}

/**
 * Stamps the regions that the batch has read: those that it lists or has offers of, but for the unread ones and those of
 * which every row was rejected.
 * @returns the latter, as they are quarantined
 */
export async function stampRead(
  sql: SessionSql,
  source: CatalogueSource,
  { regions, offered, unread, asOf, rejected, readAt }: StoredBatch,
): Promise<RejectedKey[]> {
  const reported = new Set([...regions.keys(), ...offered]).difference(unread);
  const unusable = new Set(await regionsOfUnusableRows(sql, source, reported, rejected));
  const read = [...reported.difference(unusable)];
  await adoptMachines(sql, source);
  await stampRegions(sql, source, {
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
