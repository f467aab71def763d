import type { Sql } from '../../db/connection/client.ts';
import { type FoundDifferences, recentDifferences } from '../../db/differences.ts';
import type { BatchRecord } from '../../db/held-batches.ts';
import {
  findProblems,
  isOlder,
  type JudgedSource,
  readSourceFacts,
  type SourceFacts,
  type SourceProblem,
} from '../../db/problems.ts';
import { type SoldOutRegion, soldOutRegions } from '../../db/quarantine.ts';
import type { SourceStatus } from '../../db/sources.ts';
import { dirtyDocumentCounts } from '../../db/versions.ts';
import type { Condition } from '../../domain/alert.ts';
import type { Pause } from '../../domain/source.ts';
import { noun } from '../../domain/text/quantities.ts';
import { span } from '../../domain/text/time-span.ts';
import { findRetiringMachines } from './retiring-machines.ts';
import { type AlertRules, SOLD_OUT_AT_LEAST, SOLD_OUT_SHARE } from './rules.ts';

export async function findConditions(
  sql: Sql,
  sources: readonly JudgedSource[],
  rules: AlertRules,
  now: Date,
): Promise<Condition[]> {
  const [facts, dirty, differences, soldOut, retiring] = await Promise.all([
    readSourceFacts(sql, sources),
    dirtyDocumentCounts(sql),
    recentDifferences(sql),
    soldOutRegions(sql, SOLD_OUT_SHARE, SOLD_OUT_AT_LEAST),
    findRetiringMachines(sql, now),
  ]);
  const maxAges = new Map(sources.map(({ id, maxAge }) => [id, maxAge]));
  const found = findProblems(sources, facts, now).flatMap((problem) =>
    conditionsOf(problem, facts, rules, maxAges.get(problem.source) ?? 0, now),
  );
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

/** Returns the conditions of a problem. Some problems open an alert only once they have lasted. */
function conditionsOf(
  { kind, source, batch, regions }: SourceProblem,
  { status: statuses, pending }: SourceFacts,
  { failuresInRow }: AlertRules,
  maxAge: number,
  now: Date,
): Condition[] {
  const held = pending.find(({ id }) => id === batch);
  if (held) return [heldBatch(held)];
  const status = statuses.find(({ id }) => id === source);
  if (status === undefined) return [];
  if (kind === 'paused' && status.paused) return [paused(source, status.paused)];
  if (kind === 'failing' && status.failedRuns >= failuresInRow) return [failing(status)];
  if (kind === 'stale' || (kind === 'never-read' && isOlder(status.registeredAt, maxAge, now)))
    return [staleSource(status, maxAge, now)];
  if (kind === 'stale-regions')
    return status.regions
      .filter(({ code }) => regions?.includes(code))
      .map((region) => staleRegion(status, region, maxAge, now));
  return [];
}

function heldBatch({ id, sourceId, heldSince, broken, items, worst }: BatchRecord): Condition {
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

function failing({ id, lastEnded, failedRuns: failures }: SourceStatus): Condition {
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

function staleSource(status: SourceStatus, maxAge: number, now: Date): Condition {
  const { id, verifiedAt, registeredAt, lastEnded } = status;
  return {
    kind: 'source_stale',
    subject: id,
    summary: `${id} ${ageText(verifiedAt, registeredAt, maxAge, now)}`,
    details: { verifiedAt, maxAge, error: lastEnded?.error ?? null },
  };
}

function staleRegion(
  { id, registeredAt }: SourceStatus,
  { code, verifiedAt, unreadSince, reason }: SourceStatus['regions'][number],
  maxAge: number,
  now: Date,
): Condition {
  return {
    kind: 'region_stale',
    subject: `${id}/${code}`,
    summary: `region ${code} of ${id} ${ageText(verifiedAt, unreadSince ?? registeredAt, maxAge, now)}`,
    details: { verifiedAt, maxAge, reason },
  };
}

function ageText(readAt: string | null, since: string, maxAge: number, now: Date): string {
  const seconds = Math.max(0, now.getTime() - Date.parse(readAt ?? since)) / 1000;
  return readAt === null
    ? `was never read well in ${span(seconds)}: limit ${span(maxAge)}, still without data`
    : `was last read well at ${readAt}: limit ${span(maxAge)}, now ${span(seconds)} old`;
}
