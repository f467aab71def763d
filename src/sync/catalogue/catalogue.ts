import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { and, eq, not, sql } from '../../db/connection/drizzle.ts';
import { approvedRows } from '../../db/quarantine.ts';
import { machines } from '../../db/schema.ts';
import { SAMPLE_ROWS } from '../../domain/held-sample.ts';
import { boundedRejected, type RejectedKey } from '../../domain/rejected-rows.ts';
import type { ShortRegion } from '../../domain/run.ts';
import type { CatalogueItem } from '../../sources/source.ts';
import type { Pricing } from '../currency.ts';
import { brokenGuards, type GuardLimits, hasPlansAlone, runsUntilRetired } from '../guards.ts';
import { sampleOfMachines } from '../held-sample.ts';
import {
  type BatchKind,
  type Compared,
  type Previewed,
  type PreviewOptions,
  type Progress,
  previewBatch,
  type SyncOptions,
  type SyncResult,
  syncBatch,
} from '../pipeline.ts';
import { holdStaged } from '../runs/hold.ts';
import { saveCatalogue } from '../runs/undo.ts';
import { countStored, stageStored, storedRegions } from '../stored-validators.ts';
import { unmodifiedRegions } from '../validators.ts';
import { checkPrices, jumpsOfOthers } from './check-prices.ts';
import type { Repeated } from './check-rows.ts';
import { type ComparedPlans, comparePlans, countsOf, withoutKept } from './database-plans.ts';
import {
  type CatalogueDiff,
  type CataloguePreview,
  cataloguePreview,
  countChanges,
  countWithTerms,
  diffStaged,
  type StagedDiff,
  withdrawnMachines,
} from './diff.ts';
import { catalogueMissing } from './match.ts';
import { readRegions, stampRead } from './read-regions.ts';
import { type ComparedRegionPrices, compareRegionPrices, type RegionsBatch } from './region-prices.ts';
import { highestPrice, type StagedCatalogue, stageCatalogue } from './stage.ts';
import { type CatalogueSource, lockProvider, writeMachines, writeRegions } from './store.ts';
import { writePlans } from './stored-plans.ts';
import { writeRegionPrices } from './stored-region-prices.ts';

interface CatalogueBatch {
  readonly provider: { readonly id: number; readonly name: string };
  readonly items: AsyncIterable<CatalogueItem>;
  readonly pricing: Pricing;
  readonly limits: GuardLimits;
  /** A machine with an announced end is excluded from that time on. */
  readonly now: () => Date;
  readonly progress?: Progress;
}

interface ComparedCatalogue extends Compared {
  readonly staged: StagedCatalogue;
  readonly diff: CatalogueDiff;
  /** Code → name, including unmodified regions. */
  readonly regions: ReadonlyMap<string, string>;
  readonly regionPrices: ComparedRegionPrices['prices'];
  readonly plans: ComparedPlans;
  readonly hasOnlyPlans: boolean;
  /** Without price jumps: an approval of the batch includes them. */
  readonly rejectedWithoutJumps: readonly RejectedKey[];
}

export function syncCatalogue(sync: SyncOptions & CatalogueBatch): Promise<SyncResult> {
  return syncBatch(catalogueKind(sync.run.sourceId, sync, sync.approved ?? false), sync);
}

export interface PreviewedCatalogue extends Previewed<CatalogueDiff>, CataloguePreview {
  readonly kind: 'catalogue';
  readonly currency: string;
  readonly regions: Readonly<Record<string, string>>;
}

export async function previewCatalogue(
  options: PreviewOptions,
  batch: CatalogueBatch,
): Promise<PreviewedCatalogue> {
  return {
    kind: 'catalogue',
    currency: batch.pricing.currency,
    ...(await previewBatch(
      catalogueKind(options.sourceId, batch, true),
      options,
      async (db, limit, { regions }) => ({
        ...(await previewAll(db, limit)),
        regions: Object.fromEntries(regions),
      }),
    )),
  };
}

/** @param approved an approval accepts the batch's price jumps and retires the missing machines at once */
function catalogueKind(
  sourceId: string,
  { provider, items, pricing, limits, now, progress }: CatalogueBatch,
  approved: boolean,
): BatchKind<StagedCatalogue, ComparedCatalogue> {
  const source = { id: sourceId, provider };
  return {
    pricing,
    stage: (db) =>
      stageCatalogue(
        db,
        items,
        pricing,
        { maxPrice: highestPrice(limits.maxHourlyPrice, pricing), maxRatio: limits.priceRatio },
        now(),
        progress,
      ),
    countStored: (db) => countStored(db, sourceId),
    lock: (db) => lockProvider(db, source),

    compare: (db, staged) => compareCatalogue(db, staged, source, { pricing, limits, approved }),

    async hold(db, run, { broken, staged, regions, rejectedWithoutJumps: rejected }, readAt) {
      const worst = sampleOfMachines(await previewAll(db, SAMPLE_ROWS), pricing.currency);
      const { asOf, regionPrices, databasePlans, unreadItems } = staged;
      const notRead = unreadItems.size > 0 ? [{ kind: 'unread-prices', items: [...unreadItems] }] : [];
      const others = [...regionPrices, ...databasePlans, ...notRead];
      await holdStaged(db, run, { broken, readAt, rejected, worst, regions, asOf, others });
      return undefined;
    },

    saveBefore: (db, decision) => saveCatalogue(db, decision, source),

    async write(db, { staged, diff, regions, regionPrices, plans, ...compared }, { runId, now, readAt }) {
      // Plans and prices of regions say nothing about the machines of a region.
      const rejected = boundedRejected(compared.rejectedWithoutJumps);
      const { hasOnlyPlans } = compared;
      const renamed = await writeRegions(db, source, regions, staged.countries, !hasOnlyPlans);
      const by = { runId, sourceId, now };
      const repriced = await writeRegionPrices(db, provider.id, regionPrices, now);
      const replanned = await writePlans(db, source, plans, now);
      const retired = await writeMachines(db, source, renamed, by, runsUntilRetired(approved));
      const unread =
        readAt === undefined ? [] : await stampRead(db, source, staged, regions, rejected, readAt);
      const changed = renamed.changed || repriced || replanned || diff.added + diff.changed + retired > 0;
      const counts = { retired: hasOnlyPlans ? plans.gone.length : retired };
      return { changed, counts, unread, namings: renamed.namings };
    },
  };
}

/** Returns what the batch would change. Of regions and plans it has the price jumps, which may hold the batch. */
async function previewAll(db: ConnectionDatabase, limit: number | undefined): Promise<CataloguePreview> {
  const preview = await cataloguePreview(db, limit);
  const jumps = await jumpsOfOthers(db);
  if (jumps.length === 0) return preview;
  const { price = 0 } = preview.totals;
  return {
    ...preview,
    rows: [...jumps.slice(0, limit), ...preview.rows],
    totals: { ...preview.totals, price: price + jumps.length },
  };
}

/** Compares the staged rows with the stored ones, rejects unusable rows, and checks the guards. */
async function compareCatalogue(
  db: ConnectionDatabase,
  staged: StagedCatalogue,
  source: CatalogueSource,
  { pricing, limits, approved }: Pick<CatalogueBatch, 'pricing' | 'limits'> & { readonly approved: boolean },
): Promise<ComparedCatalogue> {
  const { id: sourceId, provider } = source;
  const unmodified = unmodifiedRegions(staged.validators);
  const stored = await stageStored(db, sourceId, unmodified);
  const regions = new Map([...(await storedRegions(db, provider.id, unmodified)), ...staged.regions]);
  const seen = staged.seen + stored;
  const compared = await diffStaged(
    db,
    { id: sourceId, providerId: provider.id },
    {
      regions: [...regions.keys()],
      rows: staged.offers + stored,
      rejected: staged.rejected,
      maxPrice: highestPrice(limits.maxHourlyPrice, pricing),
    },
  );
  const duplicates = await duplicatesIn(db, sourceId, compared);
  const read = readRegions(staged, regions);
  const batch = { read: read.difference(new Set(unmodified)), known: read, pricing, limits };
  const others = await compareOthers(db, staged, source, batch);
  const prices = await checkPrices(db, sourceId, {
    limits,
    approved,
    stated: {
      machine: seen,
      term: seen,
      region: staged.regionPrices.length,
      plan: staged.databasePlans.length,
    },
    changed: [...others.prices.changed, ...others.plans.repriced],
  });
  const plans = withoutKept(others.plans, prices.keeping.plan);
  const diff = prices.hasChanged ? await countChanges(db, sourceId) : compared.diff;
  const rejected = seen - compared.usable + prices.setAside;
  // Neither rows that wait for a setting nor rows that an operator approved are a sign of a broken feed.
  const uncounted = staged.waiting + duplicates.approved;
  const broken = brokenGuards(
    {
      ...diff,
      totals: staged.totals,
      duplicates: duplicates.rows,
      duplicateTypes: duplicates.types,
      setAside: prices.setAside,
      seen: seen - uncounted,
      rejected: rejected - uncounted,
      knownTerms: diff.termsLost > 0 ? await countWithTerms(db, sourceId) : 0,
      plans: plans.usable,
    },
    limits,
  );
  const { known, added, changed, withdrawn, soldOut } = diff;
  const hasOnlyPlans = hasPlansAlone({ known, seen, rejected, plans: plans.usable });
  return {
    staged,
    diff,
    regions,
    regionPrices: new Map([...others.prices.prices].filter(([code]) => !prices.keeping.region.has(code))),
    plans,
    hasOnlyPlans,
    broken: [...broken, ...prices.broken, ...plans.broken],
    counts: hasOnlyPlans
      ? { ...countsOf(plans), seen: seen + staged.databasePlans.length, rejected }
      : { seen, rejected, added, changed, withdrawn },
    rejected: boundedRejected([
      ...compared.rejected,
      ...staged.rejectedTerms,
      ...prices.rejected,
      ...others.prices.rejected,
      ...plans.rejected,
    ]),
    rejectedWithoutJumps: compared.rejected,
    withdrawn: withdrawn + soldOut > 0 ? await withdrawnMachines(db) : [],
    completeness: {
      regions: new Set([...read, ...staged.unread.keys()]).size,
      unread: staged.unread.size,
      short: await shortRegions(db, sourceId),
    },
  };
}

const SHORT_SHARE = 0.2;
const SHORT_AT_LEAST = 10;

/** Returns the regions that lack many machines for the first time. A machine that stays away counts once. */
async function shortRegions(db: ConnectionDatabase, sourceId: string): Promise<ShortRegion[]> {
  const [lost, m] = [catalogueMissing, machines];
  const missing = sql<number>`count(*)::int`;
  const known = sql<number>`(select count(*)::int from machines k where k.region_id = ${lost.regionId}
    and k.source_id = ${sourceId} and k.retired_at is null)`;
  const found = await db
    .select({ code: lost.regionCode, missing, known })
    .from(lost)
    .innerJoin(m, eq(m.id, lost.machineId))
    .where(and(not(lost.tolerated), eq(m.missedRuns, 0)))
    .groupBy(lost.regionId, lost.regionCode)
    .having(sql`${missing} >= ${SHORT_AT_LEAST}`)
    .orderBy(sql`${missing} desc`, sql`${lost.regionCode} collate "C"`);
  return found.filter((region) => region.missing >= SHORT_SHARE * region.known);
}

/** Compares prices of regions, and plans of databases, with the stored ones. */
async function compareOthers(
  db: ConnectionDatabase,
  { regionPrices: stated, databasePlans, unreadItems, unread }: StagedCatalogue,
  source: CatalogueSource,
  { limits, ...rest }: Omit<RegionsBatch, 'unread'> & Pick<CatalogueBatch, 'limits'>,
): Promise<{ readonly prices: ComparedRegionPrices; readonly plans: ComparedPlans }> {
  const batch = { ...rest, unread };
  const prices = await compareRegionPrices(db, source, { ...batch, stated, unreadItems });
  const isUnread = unreadItems.has('database_plan');
  return {
    prices,
    plans: await comparePlans(db, source, { ...batch, stated: databasePlans, isUnread, limits }),
  };
}

const rowsOf = (repeated: readonly Repeated[]) => repeated.reduce((sum, { rows }) => sum + rows, 0);

/** Counts the repeated rows without an approval, their types, and the approved rows. */
async function duplicatesIn(
  db: ConnectionDatabase,
  sourceId: string,
  { rejected, repeated }: Pick<StagedDiff, 'rejected' | 'repeated'>,
): Promise<{ rows: number; types: number; approved: number }> {
  const known = await approvedRows(db, sourceId, rejected);
  const unknown = repeated.filter((row) => !known.has(row.rejected));
  const rows = rowsOf(unknown);
  const approved = known.size + rowsOf(repeated) - rows - (repeated.length - unknown.length);
  return { rows, types: new Set(unknown.map(({ name }) => name)).size, approved };
}
