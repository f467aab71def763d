/** What a held batch would change, for operators. */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { type Column, inArray, not, pgTable, sql } from '../../db/connection/drizzle.ts';
import { array, countIf, type RowOf, selectAs } from '../../db/connection/statements.ts';
import { factsJson } from '../../db/machine-facts.ts';
import { type HeldSample, type HeldSampleRow, sampleOf } from '../../domain/held-sample.ts';
import type { MemoryUnit } from '../../domain/machine.ts';
import { factsChange, type MachineFacts } from '../../domain/machine-facts.ts';
import { type StoredTerms, termsChange } from '../../domain/prices/term.ts';
import { hourly } from '../../domain/text/quantities.ts';
import { inWords, priceJumps } from './check-prices.ts';
import { catalogueDiff, catalogueMissing } from './match.ts';

const d = catalogueDiff;
const j = priceJumps;

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

/** Returns what the batch would change. Of regions and plans it has the price jumps, which may hold the batch. */
export async function cataloguePreview(
  db: ConnectionDatabase,
  limit: number | undefined,
): Promise<CataloguePreview> {
  const preview = await machinesPreview(db, limit);
  const jumps = await jumpsOfOthers(db);
  if (jumps.length === 0) return preview;
  const { price = 0 } = preview.totals;
  return {
    ...preview,
    rows: [...jumps.slice(0, limit), ...preview.rows],
    totals: { ...preview.totals, price: price + jumps.length },
  };
}

/** Returns the jumps of regions and plans as rows of the preview. */
async function jumpsOfOthers(db: ConnectionDatabase): Promise<PreviewRow[]> {
  const rows = await db
    .select()
    .from(j)
    .where(inArray(j.kind, ['region', 'plan']))
    .orderBy(sql`${j.ratio} desc`, sql`${j.regionCode} collate "C"`, sql`${j.name} collate "C"`);
  return rows.map((row) => {
    const { regionCode, name } = row;
    const detail = `${inWords({ ...row, amount: row.oldAmount, per: row.oldPer, currency: row.oldCurrency })} → ${inWords(row)}`;
    return { change: 'price', regionCode, name, oldPrice: null, newPrice: null, shape: null, detail };
  });
}

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
async function machinesPreview(db: ConnectionDatabase, limit: number | undefined): Promise<CataloguePreview> {
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

const sum = (totals: Readonly<Record<string, number>>) =>
  Object.values(totals).reduce((all, each) => all + each, 0);

export function sampleOfMachines({ rows, totals }: CataloguePreview, currency: string): HeldSample {
  return sampleOf(
    rows.map((row) => ({
      change: row.change,
      name: row.name,
      place: row.regionCode,
      ...priceAndDetail(row, currency),
    })),
    sum(totals),
  );
}

function priceAndDetail(
  { change, oldPrice, newPrice, detail }: PreviewRow,
  currency: string,
): Pick<HeldSampleRow, 'before' | 'after'> {
  const price = (perMinute: number | null) =>
    perMinute === null ? [] : [`${hourly(perMinute)} ${currency}/hour`];
  // The detail of a size has both sides; the detail of an exclusion has only the new reason.
  const [before, after] = detail.includes(' → ') ? detail.split(' → ') : ['', detail];
  if (change === 'gone') return { before: 'published', after: null };
  const text = (price: string[], more: string | undefined) => [...price, ...(more ? [more] : [])].join(', ');
  return {
    before: change === 'new' ? null : text(price(oldPrice), before) || 'published',
    after: change === 'excluded' ? detail : text(price(newPrice), after) || 'published',
  };
}
