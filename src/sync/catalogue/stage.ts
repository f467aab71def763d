/**
 * The way of a catalogue into the staging table. Rows stream into it with COPY while they are fetched, so that neither
 * the process's memory nor a round trip for each row limits how many there can be.
 */

import type { SessionDatabase } from '../../db/connection/connect.ts';
import { COPY_NULL, copyField } from '../../db/connection/copy.ts';
import { copyStagedOffers, createStagedOffers } from '../../db/sync/staged.ts';
import { limitBroken } from '../../domain/cost-optimized-limits.ts';
import { isStock } from '../../domain/exclusion.ts';
import type { Offer } from '../../domain/machine.ts';
import { FACT_FIELDS, type MachineFacts } from '../../domain/machine-facts.ts';
import { decimal, isPositive, pricePerMinute } from '../../domain/price.ts';
import { REJECTED_KEPT, type RejectedKey, unreadRegion } from '../../domain/rejected-rows.ts';
import { type CatalogueItem, SourceError } from '../../sources/source.ts';
import type { ValidatorItem } from '../../sources/validator.ts';
import type { Pricing } from '../currency.ts';
import { EventLoopYielder } from '../event-loop-yielder.ts';
import type { Progress, Staged } from '../pipeline.ts';

/** What a source said besides the staged rows. `seen` counts offers, rejected rows and unread regions. */
export interface StagedCatalogue extends Staged {
  readonly regions: ReadonlyMap<string, string>;
  /** The regions that could not be read, then at most one more row than `REJECTED_KEPT`. */
  readonly rejected: readonly RejectedKey[];
  /** How many of all that are rejected wait for an operator. */
  readonly waiting: number;
  /** Offers alone: so many rows are staged. */
  readonly offers: number;
  /** What the upstream said there is against what arrived. */
  readonly totals: readonly { readonly of: string; readonly advertised: number; readonly fetched: number }[];
  /** Codes of the regions that offers name. */
  readonly offered: ReadonlySet<string>;
  /** Regions that could not be read: code → why. */
  readonly unread: ReadonlyMap<string, string>;
  /** Region's code → how old its data is by the upstream's own word, RFC 3339; `undefined` for the whole source. */
  readonly asOf: ReadonlyMap<string | undefined, string>;
}

const PROGRESS_EVERY = 500;

/** Regions of one catalogue. PostgreSQL stages the rows, and memory holds the regions. */
const MOST_REGIONS = 10_000;

/** Characters of rows in one step: a step for each row would cost as much as the row. */
const BATCH = 16_384;

/**
 * Makes the staging table and copies every offer into it.
 * @throws SourceError when the adapter fails: a batch is whole or it is nothing.
 */
export async function stageCatalogue(
  db: SessionDatabase,
  items: AsyncIterable<CatalogueItem>,
  pricing: Pricing,
  progress: Progress = () => {},
): Promise<StagedCatalogue> {
  await createStagedOffers(db);
  const collected = new CollectedItems();
  const yielder = new EventLoopYielder();

  async function* lines(): AsyncGenerator<string> {
    let reported = 0;
    let text = '';
    for await (const item of items) {
      collected.add(item);
      if (item.kind === 'offer') {
        text += copyLine(item.offer, pricePerMinute(item.offer.price, pricing.currency, pricing.rates));
        if (text.length >= BATCH) {
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

  await copyStagedOffers(db, lines());
  progress(collected.seen);
  return collected.staged();
}

/** Collects the items of a catalogue, except the offers: they are only counted. */
class CollectedItems {
  readonly #regions = new Map<string, string>();
  readonly #rejected: RejectedKey[] = [];
  readonly #totals: { of: string; advertised: number; fetched: number }[] = [];
  readonly #validators: ValidatorItem[] = [];
  readonly #offered = new Set<string>();
  readonly #unread = new Map<string, string>();
  readonly #asOf = new Map<string | undefined, string>();
  #lastOffered: string | undefined;
  #offers = 0;
  #waiting = 0;
  /** Offers, rejected rows and unread regions. */
  seen = 0;

  /** @throws SourceError for more regions than one catalogue may have */
  add(item: CatalogueItem): void {
    switch (item.kind) {
      case 'region':
        this.#regions.set(item.code, item.name);
        break;
      case 'rejected':
        this.seen += 1;
        if (item.waits) this.#waiting += 1;
        if (this.#rejected.length <= REJECTED_KEPT) this.#rejected.push(item);
        break;
      case 'unread': {
        this.seen += 1;
        const before = this.#unread.get(item.regionCode);
        this.#unread.set(item.regionCode, before === undefined ? item.reason : `${before}; ${item.reason}`);
        break;
      }
      case 'as-of':
        this.#asOf.set(item.regionCode, item.time);
        break;
      case 'total':
        this.#totals.push(item);
        break;
      case 'validator':
      case 'unmodified':
        this.#validators.push(item);
        break;
      case 'offer':
        this.seen += 1;
        this.#offers += 1;
        if (item.offer.regionCode === this.#lastOffered) break;
        this.#lastOffered = item.offer.regionCode;
        this.#offered.add(this.#lastOffered);
        break;
    }
    const regions = Math.max(this.#regions.size, this.#offered.size, this.#unread.size, this.#asOf.size);
    if (regions <= MOST_REGIONS) return;
    const problem = `the source names more than ${MOST_REGIONS} regions, the most that are read of one catalogue`;
    throw new SourceError('invalid', `${problem}; split it into several sources`);
  }

  staged(): StagedCatalogue {
    const unread = [...this.#unread].map(([code, reason]) => unreadRegion(code, reason));
    return {
      regions: this.#regions,
      rejected: [...unread, ...this.#rejected],
      waiting: this.#waiting,
      seen: this.seen,
      offers: this.#offers,
      totals: this.#totals,
      validators: this.#validators,
      offered: this.#offered,
      unread: this.#unread,
      asOf: this.#asOf,
      dataTime: this.#asOf.get(undefined),
    };
  }
}

function copyLine(offer: Offer, price: string | undefined): string {
  const { regionCode, name, cpu, ram, ramUnit, price: source, facts } = offer;
  const excluded = exclusion(offer, price) ?? COPY_NULL;
  return `${copyField(regionCode)}\t${copyField(name)}\t${cpu}\t${ram}\t${ramUnit}\t${source.amount}\t${source.per}\t${source.currency}\t${price ?? COPY_NULL}\t${excluded}\t${facts ? factFields(facts) : UNKNOWN_FACTS}\n`;
}

const UNKNOWN_FACTS = FACT_FIELDS.map(() => COPY_NULL).join('\t');

function factFields(facts: Partial<MachineFacts>): string {
  return FACT_FIELDS.map((field) => {
    const fact = facts[field];
    return fact == null ? COPY_NULL : copyField(String(fact));
  }).join('\t');
}

/**
 * A missing exchange rate is not decided here: the stored price may be kept, see db/sync/catalogue-diff.ts. An amount so
 * small that nothing of it is left at the scale of prices is a zero price too.
 */
function exclusion(offer: Offer, price: string | undefined): string | undefined {
  // A computed price is the shortest decimal: whether it is positive shows at once.
  const costs = price === undefined ? isPositive(offer.price.amount) : price !== '0' && price[0] !== '-';
  const own = costs ? limitBroken(offer) : 'zero_price';
  return isStock(offer.excluded) ? (own ?? offer.excluded) : (offer.excluded ?? own);
}

/** The guard's limit per minute, rounded as every price is, so that a price at the limit is not above it. */
export function highestPrice(hourly: number, { currency }: Pricing): string {
  const price = pricePerMinute({ amount: decimal(hourly) ?? '0', per: 'hour', currency }, currency, {});
  return price ?? '0';
}
