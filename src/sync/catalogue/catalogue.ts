/**
 * The steps of a catalogue: stage.ts copies what the adapter reads; match.ts finds the differences to the stored machines, and
 * check-rows.ts the unusable rows; check-prices.ts finds jumps; guards.ts decides whether an operator has to; store.ts and log.ts write.
 */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { notRetired } from '../../db/connection/statements.ts';
import { machines } from '../../db/schema.ts';
import { SAMPLE_ROWS } from '../../domain/held-sample.ts';
import { boundedRejected, groupReasons, type RejectedKey } from '../../domain/rejected-rows.ts';
import type { CatalogueItem } from '../../sources/source.ts';
import type { Pricing } from '../currency.ts';
import { type GuardLimits, runsUntilRetired } from '../guards.ts';
import { patternOf } from '../pattern.ts';
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
import { unmodifiedRegions } from '../validators.ts';
import { countRows, countSizes, groupPrices } from './batch-facts.ts';
import { checkPrices } from './check-prices.ts';
import { duplicatesIn } from './check-rows.ts';
import { type ComparedPlans, comparePlans, countsOf, withoutKept, writePlans } from './database-plans.ts';
import { readRegions, stampEveryRegion, stampRead } from './freshness.ts';
import { catalogueGuards, hasPlansAlone } from './guards.ts';
import { holdCatalogue, saveCatalogue } from './held-items.ts';
import {
  type CatalogueDiff,
  countChanges,
  countWithTerms,
  matchOffers,
  shortRegions,
  withdrawnMachines,
} from './match.ts';
import { type CataloguePreview, cataloguePreview, sampleOfMachines } from './preview.ts';
import {
  type ComparedRegionPrices,
  compareRegionPrices,
  type RegionsBatch,
  writeRegionPrices,
} from './region-prices.ts';
import { highestPrice, type StagedCatalogue, stageCatalogue, stageStored, storedRegions } from './stage.ts';
import { type CatalogueSource, lockProvider, writeMachines, writeRegions } from './store.ts';

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
        ...(await cataloguePreview(db, limit)),
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
    async confirm(db, readAt) {
      await stampEveryRegion(db, sourceId, readAt);
      return db.$count(machines, notRetired(machines, sourceId));
    },
    lock: (db) => lockProvider(db, source),

    compare: (db, staged) => compareCatalogue(db, staged, source, { pricing, limits, approved }),

    async hold(db, run, compared, { broken, readAt }) {
      const { staged, regions, rejectedWithoutJumps: rejected } = compared;
      const worst = sampleOfMachines(await cataloguePreview(db, SAMPLE_ROWS), pricing.currency);
      const findPattern = async () =>
        patternOf({
          owner: provider.name,
          known: compared.diff.known,
          seen: compared.counts.seen,
          broken,
          rejected: groupReasons(compared.rejected),
          ...(await countRows(db, sourceId)),
          catalogue: {
            totals: staged.totals,
            excluded: compared.withdrawn,
            prices: await groupPrices(db, sourceId),
            sizes: await countSizes(db),
            termsLost: compared.diff.termsLost,
            plansGone: compared.plans.gone.length,
          },
        });
      const { asOf, regionPrices, databasePlans, unreadItems } = staged;
      const notRead = unreadItems.size > 0 ? [{ kind: 'unread-prices', items: [...unreadItems] }] : [];
      const others = [...regionPrices, ...databasePlans, ...notRead];
      const unmodified = staged.validators.filter(({ kind }) => kind === 'unmodified');
      const parts = { broken, findPattern, readAt, rejected, worst };
      await holdCatalogue(db, run, { ...parts, regions, asOf, others, unmodified });
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
  const compared = await matchOffers(
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
  const guards = catalogueGuards(
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
    guards: [...guards, ...prices.guards, ...plans.guards],
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

/** Compares prices of regions, and plans of databases, with the stored ones. */
async function compareOthers(
  db: ConnectionDatabase,
  { regionPrices: stated, databasePlans, unreadItems, unread, validators }: StagedCatalogue,
  source: CatalogueSource,
  { limits, ...rest }: Omit<RegionsBatch, 'unread'> & Pick<CatalogueBatch, 'limits'>,
): Promise<{ readonly prices: ComparedRegionPrices; readonly plans: ComparedPlans }> {
  const batch = { ...rest, unread };
  const prices = await compareRegionPrices(db, source, { ...batch, stated, unreadItems });
  const isUnread = unreadItems.has('database_plan');
  // Plans may be in another payload than the machines of their region.
  const readPlans = new Set([...rest.read, ...databasePlans.map(({ regionCode }) => regionCode)]);
  const read = readPlans.difference(new Set(unmodifiedRegions(validators, 'database_plan')));
  return {
    prices,
    plans: await comparePlans(db, source, { ...batch, read, stated: databasePlans, isUnread, limits }),
  };
}
