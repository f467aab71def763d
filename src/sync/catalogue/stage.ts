/** Copies a catalogue into the staging table while it is fetched. Neither memory nor round trips limit its size. */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { COPY_NULL, copyField, copyLines } from '../../db/connection/copy.ts';
import { and, inArray, integer, jsonb, numeric, pgTable, sql, text } from '../../db/connection/drizzle.ts';
import { array, inCatalogue, insertInto, notRetired } from '../../db/connection/statements.ts';
import { factsOf } from '../../db/machine-facts.ts';
import { factColumns, minutePrice, statedPrice } from '../../db/schema/shared-columns.ts';
import { machines, regions } from '../../db/schema.ts';
import type { StatedPlan } from '../../domain/database-plan.ts';
import { Slice, WORKER_SLICE_MS } from '../../domain/event-loop.ts';
import { hasEnded, isStock, limitBroken, type Offer } from '../../domain/machine.ts';
import { FACT_FIELDS, type MachineFacts } from '../../domain/machine-facts.ts';
import {
  amountIn,
  decimal,
  isPositive,
  MINUTES_PER_MONTH,
  pricePerMinute,
} from '../../domain/prices/price.ts';
import type { OfferedRegionPrice } from '../../domain/prices/region-price.ts';
import {
  type OfferedTerm,
  type StoredTerm,
  type StoredTerms,
  storedTerm,
  TERM_MINUTES,
  TERMS,
  type Term,
} from '../../domain/prices/term.ts';
import {
  REJECTED_KEPT,
  type RejectedKey,
  type RejectionCode,
  unreadRegion,
} from '../../domain/rejected-rows.ts';
import {
  type CatalogueItem,
  SourceError,
  type UnreadItem,
  type ValidatorItem,
} from '../../sources/source.ts';
import type { Pricing } from '../currency.ts';
import type { Progress } from '../pipeline.ts';

export const offerColumns = {
  regionCode: text('region_code').notNull(),
  name: text('name').notNull(),
  cpu: integer('cpu').notNull(),
  ram: numeric('ram').notNull(),
  ramUnit: text('ram_unit').notNull(),
  ...statedPrice,
  price: minutePrice('price'),
  excludedReason: text('excluded_reason'),
  /** `StoredTerms`. Null: none is known. */
  terms: jsonb('terms'),
  ...factColumns,
};

export const stagedOffers = pgTable('staged_offers', offerColumns);

export interface StatedRegionPrice {
  readonly regionCode: string;
  readonly price: OfferedRegionPrice;
}

export type StagedCatalogue = ReturnType<CollectedItems['staged']>;

const PROGRESS_EVERY = 500;

/** Regions of one catalogue. Unlike the rows, they stay in memory. */
const MOST_REGIONS = 10_000;

/** Prices of regions, and plans of databases, stay in memory too. */
const MOST_REGION_PRICES = 100_000;
const MOST_PLANS = 250_000;

/** Rejected terms that are stored with their reasons. */
const TERMS_KEPT = 1000;

/** Characters of one chunk of COPY: a chunk for each row would double the cost of the row. */
const CHUNK = 16_384;

/** @throws SourceError if the adapter fails: an incomplete batch is never stored */
export async function stageCatalogue(
  db: ConnectionDatabase,
  items: AsyncIterable<CatalogueItem>,
  pricing: Pricing,
  bounds: TermBounds,
  now: Date,
  progress: Progress = () => {},
): Promise<StagedCatalogue> {
  const collected = new CollectedItems();
  const staged = (offer: Offer): string => {
    const price = pricePerMinute(offer.price, pricing.currency, pricing.rates);
    if (offer.terms === undefined && offer.monthlyCap === undefined)
      return copyLine(offer, price, now, COPY_NULL);
    const terms = termsOf(offer, price, pricing, bounds, (row) => collected.rejectTerm(row));
    if (terms) collected.withTerms += 1;
    return copyLine(offer, price, now, terms === undefined ? COPY_NULL : copyField(JSON.stringify(terms)));
  };
  const slice = new Slice(WORKER_SLICE_MS);

  async function* lines(): AsyncGenerator<string> {
    let reported = 0;
    let text = '';
    for await (const item of items) {
      collected.add(item);
      if (item.kind === 'offer') {
        text += staged(item.offer);
        if (text.length >= CHUNK) {
          yield text;
          text = '';
        }
      }
      if (slice.isOver) await slice.next();
      if (collected.seen < reported + PROGRESS_EVERY) continue;
      reported = collected.seen;
      progress(reported);
    }
    if (text !== '') yield text;
  }

  await stageOffers(db, lines());
  progress(collected.seen);
  return collected.staged();
}

/** @param lines rows in COPY's text format, in the order of the table's columns */
async function stageOffers(db: ConnectionDatabase, lines: AsyncIterable<string>): Promise<void> {
  // A sample of 3000 of a million rows suffices for the planner, and takes a tenth of the time.
  await db.execute(sql`set default_statistics_target = 10`);
  await copyLines(db, stagedOffers, lines);
}

function copyLine(offer: Offer, price: string | undefined, now: Date, terms: string): string {
  const { regionCode, name, cpu, ram, ramUnit, price: source, facts } = offer;
  const excluded = exclusion(offer, price, now) ?? COPY_NULL;
  return `${copyField(regionCode)}\t${copyField(name)}\t${cpu}\t${ram}\t${ramUnit}\t${source.amount}\t${source.per}\t${source.currency}\t${price ?? COPY_NULL}\t${excluded}\t${terms}\t${facts ? factFields(facts) : UNKNOWN_FACTS}\n`;
}

const UNKNOWN_FACTS = FACT_FIELDS.map(() => COPY_NULL).join('\t');

function factFields(facts: Partial<MachineFacts>): string {
  return FACT_FIELDS.map((field) => {
    const fact = facts[field];
    return fact == null ? COPY_NULL : copyField(String(fact));
  }).join('\t');
}

/** The comparison decides about a missing rate. An amount that rounds to zero is a zero price. */
function exclusion(offer: Offer, price: string | undefined, now: Date): string | undefined {
  const costs = price === undefined ? isPositive(offer.price.amount) : price !== '0';
  const ended = offer.facts !== undefined && hasEnded(offer.facts, now) ? 'discontinued' : undefined;
  const own = ended ?? (costs ? limitBroken(offer) : 'zero_price');
  return isStock(offer.excluded) ? (own ?? offer.excluded) : (offer.excluded ?? own);
}

/** Returns the guard's limit per minute. It is rounded like a price, so that a price at the limit passes. */
export function highestPrice(hourly: number, { currency }: Pricing): string {
  const price = pricePerMinute({ amount: decimal(hourly) ?? '0', per: 'hour', currency }, currency, {});
  return price ?? '0';
}

/** The items of a catalogue that are not staged. */
class CollectedItems {
  readonly regions = new Map<string, string>();
  /** Region code → country, where the source states it. */
  readonly countries = new Map<string, string>();
  /** At most `REJECTED_KEPT` + 1 rows. */
  readonly rejected: RejectedKey[] = [];
  /** Announced and received rows. */
  readonly totals: { of: string; advertised: number; fetched: number }[] = [];
  readonly validators: ValidatorItem[] = [];
  readonly regionPrices: StatedRegionPrice[] = [];
  /** Items of regions whose prices could not be read. */
  readonly unreadItems = new Set<UnreadItem>();
  readonly databasePlans: StatedPlan[] = [];
  /** Codes of regions with offers. */
  readonly offered = new Set<string>();
  /** Regions that could not be read: code → reason. */
  readonly unread = new Map<string, string>();
  /** Region code → the upstream's own time of the data, RFC 3339; the key `undefined` is the whole source. */
  readonly asOf = new Map<string | undefined, string>();
  #lastOffered: string | undefined;
  /** Bad terms of good offers, at most `TERMS_KEPT`. They do not count as seen. */
  readonly rejectedTerms: RejectedKey[] = [];
  offers = 0;
  /** Offers with terms. */
  withTerms = 0;
  /** Rejected rows that wait for a setting. */
  waiting = 0;
  /** Offers, rejected rows and unread regions. */
  seen = 0;

  add(item: CatalogueItem): void {
    switch (item.kind) {
      case 'region':
        this.regions.set(item.code, item.name);
        if (item.country !== undefined) this.countries.set(item.code, item.country.toUpperCase());
        break;
      case 'rejected':
        this.seen += 1;
        if (item.waits) this.waiting += 1;
        if (this.rejected.length <= REJECTED_KEPT) this.rejected.push(item);
        break;
      case 'unread': {
        this.seen += 1;
        const before = this.unread.get(item.regionCode);
        this.unread.set(item.regionCode, before === undefined ? item.reason : `${before}; ${item.reason}`);
        break;
      }
      case 'as-of':
        this.asOf.set(item.regionCode, item.time);
        break;
      case 'total':
        this.totals.push(item);
        break;
      case 'validator':
      case 'unmodified':
        this.validators.push(item);
        break;
      case 'region-price':
        this.regionPrices.push(item);
        break;
      case 'database-plan':
        this.databasePlans.push(item);
        break;
      case 'unread-prices':
        for (const each of item.items) this.unreadItems.add(each);
        break;
      case 'offer':
        this.seen += 1;
        this.offers += 1;
        if (item.offer.regionCode === this.#lastOffered) break;
        this.#lastOffered = item.offer.regionCode;
        this.offered.add(this.#lastOffered);
        break;
    }
    if (this.regionPrices.length > MOST_REGION_PRICES)
      throw new SourceError('invalid', `the source states more than ${MOST_REGION_PRICES} prices of regions`);
    if (this.databasePlans.length > MOST_PLANS)
      throw new SourceError('invalid', `the source states more than ${MOST_PLANS} database plans`);
    const regions = Math.max(this.regions.size, this.offered.size, this.unread.size, this.asOf.size);
    if (regions <= MOST_REGIONS) return;
    const problem = `the source has more than ${MOST_REGIONS} regions, the limit of one catalogue`;
    throw new SourceError('invalid', `${problem}; split it into several sources`);
  }

  rejectTerm(row: RejectedKey): void {
    if (this.rejectedTerms.length < TERMS_KEPT) this.rejectedTerms.push(row);
  }

  /** Adds the unread regions to the rejected rows. */
  staged() {
    const unread = [...this.unread].map(([code, reason]) => unreadRegion(code, reason));
    return { ...this, rejected: [...unread, ...this.rejected], dataTime: this.asOf.get(undefined) };
  }
}

/** Returns the names of stored regions: code → name. */
export async function storedRegions(
  db: ConnectionDatabase,
  providerId: number,
  codes: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await db
    .select({ code: regions.code, name: regions.name })
    .from(regions)
    .where(and(inCatalogue(regions, providerId), inArray(regions.code, [...codes])));
  return new Map(rows.map(({ code, name }) => [code, name]));
}

/** Stages the stored machines of these regions, as if the source had reported them. Returns their number. */
export async function stageStored(
  db: ConnectionDatabase,
  sourceId: string,
  regionCodes: readonly string[],
): Promise<number> {
  const { name, cpu, ram, ramUnit, sourceAmount, sourcePer, sourceCurrency, price } = machines;
  const staged = await db.execute(sql`
    ${insertInto(stagedOffers, {
      regionCode: regions.code,
      name,
      cpu,
      ram,
      ramUnit,
      sourceAmount,
      sourcePer,
      sourceCurrency,
      price,
      excludedReason: sql`nullif(${machines.excludedReason}, 'no_exchange_rate')`,
      terms: machines.terms,
      ...factsOf(machines),
    })}
    from ${machines} join ${regions} on ${regions.id} = ${machines.regionId}
    where ${notRetired(machines, sourceId)} and ${sourceAmount} is not null
      and ${regions.code} = any(${array(regionCodes, 'text')})`);
  return staged.count;
}

/** What a term of an offer may cost. */
interface TermBounds {
  /** The highest price per minute, in the published currency. */
  readonly maxPrice: string;
  /** Largest ratio of a term's price to the on-demand price. */
  readonly maxRatio: number;
}

type Problem = readonly [code: RejectionCode, reason: string];

/** A decimal that is not negative. */
const PLAIN = /^\d+(\.\d+)?$/;

/**
 * Returns the terms of an offer, without bad ones and those without an exchange rate; undefined if none is left.
 * @param price of the offer per minute; undefined without an exchange rate
 * @param reject takes each bad term
 */
function termsOf(
  offer: Offer,
  price: string | undefined,
  pricing: Pricing,
  { maxPrice, maxRatio }: TermBounds,
  reject: (row: RejectedKey) => void,
): StoredTerms | undefined {
  const limits = { maxPrice: Number(maxPrice), dearest: Number(price ?? 0) * maxRatio };
  const rejectTerm = (what: string, [code, reason]: Problem) =>
    reject({ ...rowOfTerm(offer, what), code, reason });
  const terms: { [T in Term]?: StoredTerm } = {};
  for (const term of TERMS) {
    const source = offer.terms?.[term];
    if (source === undefined) continue;
    const bad = malformed(term, source);
    const stored = bad ? undefined : storedTerm(term, source, pricing.currency, pricing.rates);
    const problem = bad ?? (stored && problemOf(stored.price, limits, inText(source)));
    if (problem) rejectTerm(term, problem);
    else if (stored) terms[term] = stored;
  }
  const cap = capOf(offer, pricing, limits, (problem) => rejectTerm('monthly_cap', problem));
  if (cap === undefined) return Object.keys(terms).length === 0 ? undefined : { terms };
  return { terms, monthly_cap: cap };
}

/** Identifies a term of a machine in the quarantine and among accepted prices. No machine has this name. */
function rowOfTerm({ regionCode, name }: Pick<Offer, 'regionCode' | 'name'>, term: string) {
  return { key: `${name}@${regionCode}/${term}`, regionCode, name: `${name}/${term}` };
}

/** Prices per minute. `dearest` is 0 if the on-demand price is unknown. */
interface Limits {
  readonly maxPrice: number;
  readonly dearest: number;
}

function problemOf(price: string, { maxPrice, dearest }: Limits, stated: string): Problem | undefined {
  if (price === '0') return ['invalid', `price must be above zero; it is ${stated}`];
  if (Number(price) > maxPrice)
    return ['price_limit', `price ${stated} is above the limit maxHourlyPrice; a unit may have changed`];
  if (dearest > 0 && Number(price) > dearest)
    return ['invalid', `price exceeds the on-demand price by more than priceRatio; it is ${stated}`];
  return undefined;
}

function malformed(term: Term, source: OfferedTerm): Problem | undefined {
  const { price, upfront } = source;
  if (!PLAIN.test(price.amount) || (upfront !== undefined && !PLAIN.test(upfront)))
    return ['invalid', `price must be a decimal that is not negative; it is ${inText(source)}`];
  if (upfront !== undefined && TERM_MINUTES[term] === undefined)
    return ['invalid', `price must have no payment upfront; it is ${inText(source)}`];
  return undefined;
}

function inText({ price: { amount, currency, per }, upfront }: OfferedTerm): string {
  return `${amount} ${currency} per ${per}${upfront === undefined ? '' : ` and ${upfront} ${currency} upfront`}`;
}

/** Returns the monthly cap. Its bounds are those of a price for a month of 730 hours. */
function capOf(
  { monthlyCap: amount, price: { currency } }: Offer,
  pricing: Pricing,
  { maxPrice, dearest }: Limits,
  reject: (problem: Problem) => void,
): StoredTerms['monthly_cap'] | undefined {
  if (amount === undefined) return undefined;
  const stated = `${amount} ${currency} per month`;
  if (!PLAIN.test(amount)) {
    reject(['invalid', `monthly cap must be a decimal that is not negative; it is ${stated}`]);
    return undefined;
  }
  const source = { amount, currency };
  const price = amountIn(source, pricing.currency, pricing.rates);
  if (price === undefined) return undefined;
  const monthly = { maxPrice: maxPrice * MINUTES_PER_MONTH, dearest: dearest * MINUTES_PER_MONTH };
  const problem = problemOf(price, monthly, stated);
  if (problem) reject(problem);
  return problem ? undefined : { price, source };
}
