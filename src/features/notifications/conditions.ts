/** What is wrong now: conditions that last, and what single runs did. */
import type { ClientDatabase, Database } from '../../db/connection/client.ts';
import { and, eq, inArray, sql } from '../../db/connection/drizzle.ts';
import { type RowOf, rfc3339 } from '../../db/connection/statements.ts';
import { type FoundDifferences, recentDifferences } from '../../db/differences.ts';
import { type BatchRecord, whyHeld } from '../../db/held-batches.ts';
import { type RunningVersion, runningVersions, storedLifecycles } from '../../db/lifecycles.ts';
import {
  findProblems,
  isOlder,
  type JudgedSource,
  readSourceFacts,
  type SourceFacts,
  type SourceProblem,
} from '../../db/problems.ts';
import { type SoldOutRegion, soldOutRegions } from '../../db/quarantine.ts';
import { recentStockFlips } from '../../db/runs/stock-flips.ts';
import { alerts } from '../../db/schema.ts';
import type { SourceStatus } from '../../db/sources.ts';
import { dirtyDocumentCounts } from '../../db/versions.ts';
import type { Condition } from '../../domain/alert.ts';
import { dayOf, isEnding, type Lifecycle, lifecycleOf } from '../../domain/lifecycle.ts';
import { RETIREMENT_NOTICE_DAYS } from '../../domain/machine.ts';
import { timeInWords } from '../../domain/machine-facts.ts';
import type { Pause } from '../../domain/source.ts';
import { noun } from '../../domain/text/quantities.ts';
import { span } from '../../domain/text/time-span.ts';
import { type AlertRules, SOLD_OUT_AT_LEAST, SOLD_OUT_SHARE } from './rules.ts';

/** Returns the conditions that last. An open alert without its condition resolves. */
export async function findConditions(
  db: ClientDatabase,
  sources: readonly JudgedSource[],
  rules: AlertRules,
  now: Date,
): Promise<Condition[]> {
  const [facts, dirty, differences, soldOut, retiring, ending] = await Promise.all([
    readSourceFacts(db, sources),
    dirtyDocumentCounts(db),
    recentDifferences(db),
    soldOutRegions(db, SOLD_OUT_SHARE, SOLD_OUT_AT_LEAST),
    findRetiringMachines(db, now),
    findEndingVersions(db, now),
  ]);
  const maxAges = new Map(sources.map(({ id, maxAge }) => [id, maxAge]));
  const found = findProblems(sources, facts, now).flatMap((problem) =>
    conditionsOf(problem, facts, rules, maxAges.get(problem.source) ?? 0, now),
  );
  found.push(...retiring, ...ending);
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

function heldBatch(held: BatchRecord): Condition {
  const { id, sourceId, heldSince, pattern, broken, items, worst } = held;
  return {
    kind: 'batch_held',
    subject: sourceId,
    summary: `a batch of ${sourceId} is held for a decision: ${whyHeld(held)}`,
    details: {
      batch: id,
      heldSince,
      pattern,
      broken,
      items,
      rows: worst.rows,
      more: worst.total - worst.rows.length,
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

interface RetiringMachine {
  readonly id: number;
  readonly sourceId: string;
  readonly provider: string;
  readonly regionCode: string;
  readonly name: string;
  readonly retiresAt: string;
  readonly clusters: number;
  /** The first ones, as `organization/slug`. */
  readonly first: readonly string[];
}

/** Clusters that one summary names. */
const NAMED = 5;

/** Returns a condition for each machine whose provider retires it soon, or has retired it, while clusters run on it. */
async function findRetiringMachines(db: Database, now: Date): Promise<Condition[]> {
  const until = new Date(now.getTime() + RETIREMENT_NOTICE_DAYS * 86_400_000).toISOString();
  // The index of ends has this expression.
  const machines = await db.execute<RowOf<RetiringMachine>>(sql`
    select m.id, m.source_id as "sourceId", p.name as provider, r.code as "regionCode", m.name,
      ${rfc3339(sql`m.retires_at`)} as "retiresAt", count(*)::int as clusters,
      (array_agg(o.slug || '/' || c.slug order by o.slug collate "C", c.slug collate "C"))[:${sql.raw(String(NAMED))}] as first
    from machines m
    join clusters c on c.machine_id = m.id and c.retired_at is null
    join organizations o on o.id = c.organization_id and o.deleted_at is null
    join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
    where least(m.orderable_until, m.retires_at) is not null and m.retires_at <= ${until} and m.source_id is not null
    group by m.id, p.name, r.code order by m.retires_at, m.id`);
  return machines.map(({ id, sourceId, provider, regionCode, name, retiresAt, clusters, first }) => ({
    kind: 'machine_retiring',
    subject: `${sourceId}/${regionCode}/${name}`,
    summary: `${provider} ${Date.parse(retiresAt) <= now.getTime() ? 'retired' : 'retires'} ${name} in ${regionCode} on ${timeInWords(retiresAt)}, and ${whoRun('on it', clusters, first)}; move them to another machine`,
    details: { machine: id, name, retiresAt, clusters, first },
  }));
}

/** Returns `2 clusters run on it: acme/a, acme/b`. */
function whoRun(what: 'it' | 'on it', clusters: number, first: readonly string[]): string {
  const verb = clusters === 1 ? 'runs' : 'run';
  return `${clusters} ${noun(clusters, 'cluster')} ${verb} ${what}: ${first.join(', ')}${clusters > first.length ? ', …' : ''}`;
}

interface EndingVersion {
  readonly running: RunningVersion;
  readonly lifecycle: Lifecycle;
  /** Who ends what: `postgresql 13`, or `DigitalOcean postgresql 13` by a provider's own day. */
  readonly subject: string;
}

/** Returns a condition for each version whose support ends soon, or has ended, while clusters run it. */
async function findEndingVersions(db: Database, now: Date): Promise<Condition[]> {
  const { cycles } = await storedLifecycles(db);
  const today = dayOf(now);
  const ending = (await runningVersions(db, NAMED)).flatMap((running): EndingVersion[] => {
    const lifecycle = lifecycleOf(running, cycles, today);
    if (!isEnding(lifecycle)) return [];
    const { statedBy, cycle } = lifecycle;
    const by = statedBy === 'provider' ? `${running.provider} ` : '';
    const name = `${running.engine ?? 'unknown'} ${cycle?.name ?? running.version ?? 'unknown'}`;
    return [{ running, lifecycle, subject: by + name }];
  });
  return [...Map.groupBy(ending, ({ subject }) => subject)].map(([subject, rows]) =>
    endingVersion(subject, rows),
  );
}

function endingVersion(subject: string, rows: readonly EndingVersion[]): Condition {
  const days = rows.map(({ lifecycle }) => lifecycle.endOfLife).filter((day) => day !== null);
  const endOfLife = days.toSorted()[0] ?? null;
  const hasEnded = rows.some(({ lifecycle }) => lifecycle.state === 'ended');
  const clusters = rows.reduce((sum, { running }) => sum + running.clusters, 0);
  const first = rows
    .flatMap(({ running }) => running.first)
    .toSorted()
    .slice(0, NAMED);
  const when = endOfLife === null ? '' : ` on ${endOfLife}`;
  return {
    kind: 'version_ending',
    subject,
    summary: `the support of ${subject} ${hasEnded ? 'ended' : 'ends'}${when}, and ${whoRun('it', clusters, first)}; upgrade them`,
    details: { endOfLife, hasEnded, clusters, first },
  };
}

/** Returns what single runs did within the last hour and has no alert yet. Its alerts open and resolve at once. */
export async function findOccurrences(db: Database, rules: AlertRules): Promise<Condition[]> {
  const [moves, flips] = await Promise.all([findPriceMoves(db, rules), findStockFlips(db)]);
  return [...moves, ...flips];
}

interface MovedPrices {
  readonly sourceId: string;
  readonly runId: number;
  readonly count: number;
  /** The largest moves, in amounts of the source. */
  readonly first: readonly {
    readonly machine: string;
    readonly region: string;
    readonly before: string;
    readonly after: string;
    readonly per: string;
    readonly currency: string;
  }[];
}

/** Largest accepted difference between the clocks of a worker and of the database. */
const CLOCKS = '5 s';

/** Returns a condition for each run of the last hour that moved prices too far, unless an operator approved them. */
async function findPriceMoves(db: Database, { priceRatio }: AlertRules): Promise<Condition[]> {
  const moves = await db.execute<RowOf<MovedPrices>>(sql`
    with moved as (
      select n.source_id, n.id as run_id, m.name, r.code, old.source_amount as before, new.source_amount as after,
        new.source_per as per, new.source_currency as currency,
        greatest(new.source_amount / old.source_amount, old.source_amount / new.source_amount) as factor
      from sync_runs n
      join machine_prices new
        on new.valid_from between n.started_at - ${CLOCKS}::interval and n.finished_at + ${CLOCKS}::interval
      join machines m on m.id = new.machine_id and m.source_id = n.source_id
      join regions r on r.id = m.region_id
      join machine_prices old on old.machine_id = new.machine_id and old.valid_to = new.valid_from
      where n.finished_at > now() - interval '1 hour' and n.outcome = 'changed' and n.changed > 0
        and not exists (select from alerts a where a.key = 'prices_moved:' || n.source_id || '#' || n.id)
        and old.source_amount > 0 and new.source_amount > 0
        and not exists (
          select from sync_runs d where d.source_id = n.source_id and d.cause = 'decision'
            and new.valid_from between d.started_at - ${CLOCKS}::interval and d.finished_at + ${CLOCKS}::interval)
        and old.source_per = new.source_per and old.source_currency = new.source_currency
    ), counted as (
      select *, row_number() over (partition by run_id order by factor desc, code, name) as place
      from moved where factor > ${priceRatio}
    )
    select source_id as "sourceId", run_id::int as "runId", count(*)::int as count,
      json_agg(json_build_object('machine', name, 'region', code, 'before', before::text, 'after', after::text,
        'per', per, 'currency', currency) order by place) filter (where place <= 5) as first
    from counted group by source_id, run_id order by run_id`);
  return moves.map(({ sourceId, runId, count, first }) => ({
    kind: 'prices_moved',
    subject: `${sourceId}#${runId}`,
    summary: `${count} ${noun(count, 'price')} of ${sourceId} moved by more than a factor of ${priceRatio}`,
    details: { source: sourceId, run: runId, count, first },
  }));
}

/** Returns a condition for each flip of the last hour that has no alert yet. Readers see the new stock already. */
async function findStockFlips(db: Database): Promise<Condition[]> {
  const flips = await recentStockFlips(db);
  if (flips.length === 0) return [];
  const subjects = flips.map(({ sourceId, runId }) => `${sourceId}#${runId}`);
  const known = await db
    .select({ subject: alerts.subject })
    .from(alerts)
    .where(and(eq(alerts.kind, 'stock_flipped'), inArray(alerts.subject, subjects)));
  const isKnown = new Set(known.map(({ subject }) => subject));
  return flips
    .map(({ sourceId, runId, ...counts }) => ({
      kind: 'stock_flipped',
      subject: `${sourceId}#${runId}`,
      summary: `${counts.now} of ${counts.machines} machines of ${sourceId} are ${counts.to === 'sold_out' ? 'sold out' : 'available'}: run ${runId} changed ${counts.changed} of them at once`,
      details: { source: sourceId, run: runId, ...counts },
    }))
    .filter(({ subject }) => !isKnown.has(subject));
}
