import type { Sql } from '../../db/connection/client.ts';
import { type FoundDifferences, recentDifferences } from '../../db/differences.ts';
import { pendingBatches } from '../../db/held-batches.ts';
import { areRatesNeeded } from '../../db/prices/currency.ts';
import { type SoldOutRegion, soldOutRegions } from '../../db/quarantine.ts';
import { type SourceStatus, sourceStatus, sourceTroubles } from '../../db/sources.ts';
import { dirtyDocumentCounts } from '../../db/versions.ts';
import type { Condition } from '../../domain/alert.ts';
import type { PricedSource } from '../../domain/prices/exchange-rates.ts';
import type { Pause } from '../../domain/source.ts';
import { noun } from '../../domain/text/quantities.ts';
import { span } from '../../domain/text/time-span.ts';
import { findRetiringMachines } from './retiring-machines.ts';
import { type AlertRules, SOLD_OUT_AT_LEAST, SOLD_OUT_SHARE } from './rules.ts';

type PendingBatch = Awaited<ReturnType<typeof pendingBatches>>[number];

export interface WatchedSource extends PricedSource {
  /** The largest allowed age of its data (seconds). */
  readonly maxAge: number;
}

export async function findConditions(
  sql: Sql,
  sources: readonly WatchedSource[],
  rules: AlertRules,
  now: Date,
): Promise<Condition[]> {
  const [statuses, held, troubles, dirty, differences, soldOut, retiring] = await Promise.all([
    sourceStatus(sql),
    pendingBatches(sql),
    sourceTroubles(sql),
    dirtyDocumentCounts(sql),
    recentDifferences(sql),
    soldOutRegions(sql, SOLD_OUT_SHARE, SOLD_OUT_AT_LEAST),
    findRetiringMachines(sql, now),
  ]);
  const isRateNeeded = await areRatesNeeded(sql, sources, statuses);
  const maxAges = new Map(sources.map(({ id, maxAge }) => [id, maxAge]));
  const failedRuns = new Map(troubles.map((each) => [each.id, each.failedRuns]));
  const found = held.map(heldBatch);
  for (const status of statuses) {
    const maxAge = maxAges.get(status.id);
    if (maxAge === undefined) continue;
    if (status.paused !== null) found.push(paused(status.id, status.paused));
    if (!isRead(status) || (status.kind === 'rates' && !isRateNeeded)) continue;
    found.push(...staleness(status, maxAge, now));
    const failures = failedRuns.get(status.id) ?? 0;
    if (failures >= rules.failuresInRow) found.push(failing(status, failures));
  }
  found.push(...retiring);
  found.push(...soldOut.filter(({ sourceId }) => maxAges.has(sourceId)).map(mostlySoldOut));
  const backlog = Object.values(dirty).reduce((sum, count) => sum + count, 0);
  if (backlog > rules.backlog)
    found.push({
      kind: 'publication_behind',
      subject: 'cache',
      summary: `${backlog} documents wait to be published`,
      details: { documents: backlog },
    });
  if (differences.count > 0) found.push(differing(differences));
  return found;
}

function heldBatch({ id, sourceId, heldSince, broken, items, worst }: PendingBatch): Condition {
  return {
    kind: 'batch_held',
    subject: sourceId,
    summary: `a batch of ${sourceId} is held for a decision: ${broken.map(({ detail }) => detail).join('; ')}`,
    details: {
      batch: id,
      heldSince,
      broken,
      items,
      // A batch of an earlier release has no sample.
      ...(worst && { rows: worst.rows, more: worst.total - worst.rows.length }),
      decide: `fleetbook hold show ${sourceId}`,
    },
  };
}

function mostlySoldOut({ sourceId, regionCode, soldOut, machines, examples }: SoldOutRegion): Condition {
  const share = Math.round((soldOut / machines) * 100);
  return {
    kind: 'sold_out',
    subject: `${sourceId}/${regionCode}`,
    summary: `${soldOut} of ${machines} machines (${share} %) in region ${regionCode} of ${sourceId} are sold out: ${examples.join(', ')}${soldOut > examples.length ? ', …' : ''}`,
    details: { soldOut, machines, examples, show: `fleetbook excluded ${sourceId}` },
  };
}

function differing({ count, first }: FoundDifferences): Condition {
  return {
    kind: 'cache_differs',
    subject: 'cache',
    summary: `the cache differed from the database in ${count} ${noun(count, 'document')} within the last hour; the worker published them again`,
    details: { documents: count, first },
  };
}

/** False for a retired or disabled source: its age is intended. */
const isRead = ({ retiredAt, disabled }: SourceStatus): boolean => retiredAt === null && disabled === null;

function failing({ id, lastEnded }: SourceStatus, failures: number): Condition {
  const error = lastEnded?.error ?? null;
  return {
    kind: 'source_failing',
    subject: id,
    summary: `${id} has failed ${failures} times in a row: ${error ?? 'it was interrupted'}`,
    details: { failures, error },
  };
}

function paused(id: string, { until, reason }: Pause): Condition {
  return {
    kind: 'source_paused',
    subject: id,
    summary: `${id} is paused until ${until}, and then runs again: ${reason}`,
    details: { until, reason, show: `fleetbook source show ${id}` },
  };
}

/** Returns one condition for a stale source, else one for each stale region. */
function staleness(status: SourceStatus, maxAge: number, now: Date): Condition[] {
  const isStale = (since: string) => now.getTime() - Date.parse(since) > maxAge * 1000;
  const { id, verifiedAt, registeredAt } = status;
  const ageOf = (readAt: string | null, since: string) => {
    const seconds = Math.max(0, now.getTime() - Date.parse(readAt ?? since)) / 1000;
    return readAt === null
      ? `was never read well in ${span(seconds)}: limit ${span(maxAge)}, still without data`
      : `was last read well at ${readAt}: limit ${span(maxAge)}, now ${span(seconds)} old`;
  };
  if (isStale(verifiedAt ?? registeredAt)) {
    return [
      {
        kind: 'source_stale',
        subject: id,
        summary: `${id} ${ageOf(verifiedAt, registeredAt)}`,
        details: { verifiedAt, maxAge, error: status.lastEnded?.error ?? null },
      },
    ];
  }
  return status.regions
    .filter((region) => isStale(region.verifiedAt ?? region.unreadSince ?? registeredAt))
    .map((region) => ({
      kind: 'region_stale',
      subject: `${id}/${region.code}`,
      summary: `region ${region.code} of ${id} ${ageOf(region.verifiedAt, region.unreadSince ?? registeredAt)}`,
      details: { verifiedAt: region.verifiedAt, maxAge, reason: region.reason },
    }));
}
