/** Copies a catalogue into the staging table while it is fetched. Neither memory nor round trips limit its size. */

import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { COPY_NULL, copyField } from '../../db/connection/copy.ts';
import { limitBroken } from '../../domain/cost-optimized-limits.ts';
import type { StatedPlan } from '../../domain/database-plan.ts';
import { hasEnded } from '../../domain/end-of-sale.ts';
import { isStock } from '../../domain/exclusion.ts';
import type { Offer } from '../../domain/machine.ts';
import { FACT_FIELDS, type MachineFacts } from '../../domain/machine-facts.ts';
import { decimal, isPositive, pricePerMinute } from '../../domain/prices/price.ts';
import { REJECTED_KEPT, type RejectedKey, unreadRegion } from '../../domain/rejected-rows.ts';
import type { ValidatorItem } from '../../sources/source.ts';
import { type CatalogueItem, SourceError, type UnreadItem } from '../../sources/source.ts';
import type { Pricing } from '../currency.ts';
import { EventLoopYielder } from '../event-loop-yielder.ts';
import type { Progress } from '../pipeline.ts';
import { stageOffers } from '../staged.ts';
import type { StatedRegionPrice } from './region-prices.ts';
import { type TermBounds, termsOf } from './stage-terms.ts';

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
  const yielder = new EventLoopYielder();

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
      if (yielder.isDue()) await yielder.yieldToEventLoop();
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
