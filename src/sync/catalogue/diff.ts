import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { and, type Column, count, desc, not, pgTable, sql } from '../../db/connection/drizzle.ts';
import { array, countIf, notRetired, only, type RowOf, selectAs } from '../../db/connection/statements.ts';
import { factsJson } from '../../db/machine-facts.ts';
import { machines } from '../../db/schema.ts';
import type { MemoryUnit } from '../../domain/machine.ts';
import { factsChange, type MachineFacts } from '../../domain/machine-facts.ts';
import { type StoredTerms, termsChange } from '../../domain/prices/term.ts';
import { boundedRejected, type ReasonGroup, type RejectedKey } from '../../domain/rejected-rows.ts';
import { stagedOffers } from '../staged.ts';
import { type Bounds, type Repeated, rejectUnusable } from './check-rows.ts';
import { catalogueDiff, catalogueMissing, compare, moveMissing } from './match.ts';

/** Counts of machines. A machine is one type in one region. */
export interface CatalogueDiff {
  readonly known: number;
  readonly added: number;
  /** Machines with another value in any column except `missed_runs`. */
  readonly changed: number;
  /** Machines with another amount, period or currency, without those that are sold out now. */
  readonly repriced: number;
  readonly missing: number;
  readonly withdrawn: number;
  readonly soldOut: number;
  readonly reshaped: number;
  readonly memoryFactor: number;
  /** Machines with a term, or a monthly cap, that their source does not state any more. */
  readonly termsLost: number;
}

export interface StagedBatch extends Bounds {
  readonly rows: number;
  readonly rejected: readonly RejectedKey[];
}

export interface StagedDiff {
  readonly diff: CatalogueDiff;
  readonly rejected: readonly RejectedKey[];
  readonly usable: number;
  readonly repeated: readonly Repeated[];
}

const d = catalogueDiff;

/** Removes unusable staged rows and compares the rest with the stored machines. Fills `catalogueDiff` and `catalogueMissing`. */
export async function diffStaged(
  db: ConnectionDatabase,
  source: { readonly id: string; readonly providerId: number },
  batch: StagedBatch,
): Promise<StagedDiff> {
  await compare(db, source, batch.maxPrice);
  let { rows } = batch;
  let rejected = batch.rejected;
  let repeated: readonly Repeated[] = [];
  // The search for unusable rows takes half as long as the comparison, which shows whether there may be any.
  if (await mayBeUnusable(db, source.id, batch)) {
    const unusable = await rejectUnusable(db, source.providerId, batch);
    if (unusable.rejected.length > 0) {
      await db.execute(sql`drop table ${d}`);
      await compare(db, source, batch.maxPrice);
      rows = await db.$count(stagedOffers);
    }
    rejected = [...rejected, ...unusable.rejected];
    ({ repeated } = unusable);
  }
  rejected = boundedRejected(rejected);
  await moveMissing(db, rejected);
  const diff = await countChanges(db, source.id);
  return { diff, rejected, usable: rows, repeated };
}

/**
 * Returns false if no staged row has a price out of range, an unknown region or the machine of another row. The rows are distinct
 * if their number equals that of the source's reported machines plus others, and no two of the others are the same.
 */
async function mayBeUnusable(db: ConnectionDatabase, sourceId: string, batch: StagedBatch): Promise<boolean> {
  const isOther = sql`${d.isReported}
    and (${d.machineId} is null or ${d.wasRetired} or ${d.oldSource} is distinct from ${sourceId})`;
  const [row] = await db
    .select({
      known: db.$count(machines, notRetired(machines, sourceId)),
      unreported: countIf(not(d.isReported)),
      others: countIf(isOther),
      repeated: sql<boolean>`exists (
        select from ${d} where ${isOther} group by ${d.regionCode}, ${d.name} having count(*) > 1)`,
      unusable: sql<boolean>`coalesce(bool_or(${d.isOutOfRange}
        or ${d.isReported} and ${d.regionId} is null and not ${d.regionCode} = any(${array(batch.regions, 'text')})), false)`,
    })
    .from(d);
  if (row === undefined || row.unusable || row.repeated) return true;
  return row.known - row.unreported + row.others !== batch.rows;
}

export async function countChanges(db: ConnectionDatabase, sourceId: string): Promise<CatalogueDiff> {
  const changes = not(d.isAdded);
  const counts = await db
    .select({
      known: db.$count(machines, notRetired(machines, sourceId)),
      missing: db.$count(catalogueMissing, not(catalogueMissing.tolerated)),
      added: countIf(d.isAdded),
      changed: countIf(sql`${d.differs} and ${changes}`),
      repriced: countIf(sql`${d.repriced} and ${changes} and not ${d.isSoldOut}`),
      withdrawn: countIf(sql`${d.wasPublished} and not ${d.isPublished} and not ${d.isSoldOut}`),
      soldOut: countIf(sql`${d.wasPublished} and ${d.isSoldOut}`),
      reshaped: countIf(sql`${d.reshaped} and ${changes}`),
      memoryFactor: sql<number>`coalesce(mode() within group (order by (${d.ram} / nullif(${d.oldRam}, 0)))
        filter (where ${d.reshaped} and ${changes}), 1)::float`,
      termsLost: countIf(d.termsLost),
    })
    .from(d);
  return only(counts);
}

/** Counts the machines of a source with terms. */
export function countWithTerms(db: ConnectionDatabase, sourceId: string): Promise<number> {
  return db.$count(machines, sql`${notRetired(machines, sourceId)} and ${machines.terms} is not null`);
}

export async function withdrawnMachines(db: ConnectionDatabase): Promise<ReasonGroup[]> {
  const reason = sql<string>`${d.excludedReason}`;
  return db
    .select({
      code: reason,
      reason,
      count: count(),
      examples: sql<string[]>`(array_agg(${d.name} || '@' || ${d.regionCode}
        order by ${d.regionCode} collate "C", ${d.name} collate "C"))[1:3]`,
    })
    .from(d)
    .where(and(d.wasPublished, not(d.isPublished)))
    .groupBy(d.excludedReason)
    .orderBy(desc(count()), d.excludedReason);
}

const CHANGES = ['gone', 'excluded', 'price', 'shape', 'facts', 'published', 'new'] as const;

/** One machine that a batch would change. Prices are per minute, in the published currency. */
export interface PreviewRow {
  readonly change: (typeof CHANGES)[number];
  readonly regionCode: string;
  readonly name: string;
  readonly oldPrice: number | null;
  readonly newPrice: number | null;
  readonly shape: { readonly cpu: number; readonly ram: number; readonly ramUnit: MemoryUnit } | null;
  /** E.g. `8 GiB → 8192 GiB`, or the reason of an exclusion. */
  readonly detail: string;
}

export interface CataloguePreview {
  readonly rows: readonly PreviewRow[];
  readonly totals: Readonly<Partial<Record<PreviewRow['change'], number>>>;
  /** Changed machines that readers see neither before nor after. */
  readonly unseen: number;
}

interface Details {
  readonly oldFacts: Partial<MachineFacts> | null;
  readonly facts: Partial<MachineFacts> | null;
  readonly oldTerms: StoredTerms | null;
  readonly terms: StoredTerms | null;
}

const catalogueChanges = pgTable('catalogue_changes', (c) => ({
  change: c.text('change', { enum: CHANGES }).notNull(),
  isSeen: c.boolean('is_seen').notNull(),
  regionCode: c.text('region_code').notNull(),
  name: c.text('name').notNull(),
  oldPrice: c.numeric('old_price'),
  price: c.numeric('price'),
  shape: c.jsonb('shape'),
  detail: c.text('detail').notNull(),
  oldFacts: c.jsonb('old_facts'),
  facts: c.jsonb('facts'),
  oldTerms: c.jsonb('old_terms'),
  terms: c.jsonb('terms'),
}));

/** Returns the change of facts and terms, both sides in words: `arm64, spot unknown → x86_64, spot 0.01 USD per hour`. */
function changeInWords({ oldFacts, facts, oldTerms, terms }: Details): string {
  const [before = '', after = ''] = factsChange(oldFacts, facts).split(' → ');
  const [termsBefore = '', termsAfter = ''] = termsChange(oldTerms, terms) ?? [];
  const sides = [
    [before, termsBefore],
    [after, termsAfter],
  ].map((parts) => parts.filter((part) => part !== '').join(', '));
  return sides.every((side) => side === '') ? '' : sides.join(' → ');
}

const unitOf = (column: Column) => sql`case ${column} when 'Binary' then 'GiB' else 'GB' end`;

/** Returns what the diff would change for readers. @param limit rows of each kind; undefined for all */
export async function cataloguePreview(
  db: ConnectionDatabase,
  limit: number | undefined,
): Promise<CataloguePreview> {
  const c = catalogueChanges;
  const missing = catalogueMissing;
  await db.execute(sql`
    create temporary table ${c} on commit drop as
    ${selectAs(c, {
      change: sql`case when ${d.isAdded} then 'new'
        when ${d.wasPublished} and not ${d.isPublished} then 'excluded'
        when ${d.isPublished} and not ${d.wasPublished} then 'published'
        when ${d.reshaped} then 'shape'
        when (${d.factsChanged} or ${d.termsChanged}) and not ${d.repriced} and ${d.price} is not distinct from ${d.oldPrice} then 'facts'
        else 'price' end`,
      isSeen: sql`${d.wasPublished} or ${d.isPublished}`,
      regionCode: d.regionCode,
      name: d.name,
      oldPrice: d.oldPrice,
      price: d.price,
      shape: sql`case when ${d.isPublished} then json_build_object(
        'cpu', ${d.cpu}, 'ram', ${d.ram}, 'ramUnit', ${d.ramUnit}) end`,
      detail: sql`case when ${d.reshaped} and not ${d.isAdded}
        then format('%s cpu, %s %s → %s cpu, %s %s',
          ${d.oldCpu}, trim_scale(${d.oldRam}), ${unitOf(d.oldRamUnit)}, ${d.cpu}, trim_scale(${d.ram}), ${unitOf(d.ramUnit)})
        else coalesce(${d.excludedReason}, '') end`,
      oldFacts: d.oldFacts,
      facts: factsJson(d),
      oldTerms: d.oldTerms,
      terms: d.terms,
    })}
    from ${d} where ${d.differs}
    union all
    select 'gone', ${missing.wasPublished}, ${missing.regionCode}, ${missing.name}, null, null, null, '', null, null, null, null
    from ${missing} where not ${missing.tolerated}`);
  const counts = await db
    .select({ change: c.change, seen: countIf(c.isSeen), unseen: countIf(not(c.isSeen)) })
    .from(c)
    .groupBy(c.change)
    .orderBy(c.change);
  const rows = await db.execute<RowOf<PreviewRow & Details>>(sql`
    with ranked as (
      select *, row_number() over (
        partition by ${c.change} order by abs(ln(nullif(${c.price}, 0) / nullif(${c.oldPrice}, 0))) desc nulls last,
        ${c.regionCode} collate "C", ${c.name} collate "C") as rank
      from ${c} where ${c.isSeen}
    )
    select change, region_code as "regionCode", name, old_price::float as "oldPrice", price::float as "newPrice", shape, detail,
      old_facts as "oldFacts", facts, old_terms as "oldTerms", terms
    from ranked where rank <= ${limit ?? null}::bigint or ${limit === undefined}
    order by array_position(${array(CHANGES, 'text')}, change), rank`);
  return {
    rows: rows.map(({ oldFacts, facts, oldTerms, terms, ...row }) =>
      row.change === 'facts' || row.change === 'price'
        ? { ...row, detail: changeInWords({ oldFacts, facts, oldTerms, terms }) }
        : row,
    ),
    totals: Object.fromEntries(counts.flatMap(({ change, seen }) => (seen > 0 ? [[change, seen]] : []))),
    unseen: counts.reduce((sum, { unseen }) => sum + unseen, 0),
  };
}
