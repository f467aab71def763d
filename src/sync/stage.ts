/**
 * The way of a catalogue into the database: rows stream into a temporary table with COPY while they are fetched, so
 * that neither the process nor a round trip a row limits how many there can be.
 */

import type { SessionSql } from '../db/connect.ts';
import { COPY_NULL, copyField, copyLines } from '../db/copy.ts';
import { REJECTED_KEPT, type RejectedKey, unreadRegion } from '../db/queries/rejected.ts';
import { limitBroken } from '../domain/exclusion.ts';
import type { Offer } from '../domain/machine.ts';
import { minutePricer } from '../domain/minute-price.ts';
import { decimal, type ExchangeRates, isPositive, pricePerMinute } from '../domain/price.ts';
import type { CatalogueItem, DocumentItem } from '../sources/source.ts';
import { Turns } from './turns.ts';

export interface Pricing {
  readonly currency: string;
  readonly rates: ExchangeRates;
}

/** What a fetch brought besides the staged rows. */
export interface Fetched {
  readonly regions: ReadonlyMap<string, string>;
  /** The regions that could not be read, then at most one more row than `REJECTED_KEPT`. */
  readonly rejected: readonly RejectedKey[];
  /** How many of all that are rejected wait for an operator. */
  readonly waiting: number;
  /** Offers, rejected rows and unread regions. */
  readonly seen: number;
  /** Offers alone: so many rows are staged. */
  readonly offers: number;
  /** What the upstream said there is against what arrived. */
  readonly totals: readonly { readonly of: string; readonly advertised: number; readonly fetched: number }[];
  readonly documents: readonly DocumentItem[];
  /** Codes of the regions that offers name. */
  readonly offered: ReadonlySet<string>;
  /** Regions that could not be read: code → why. */
  readonly unread: ReadonlyMap<string, string>;
  /** Region's code, or undefined for the whole source → how old its data is by the upstream's own word, RFC 3339. */
  readonly asOf: ReadonlyMap<string | undefined, string>;
}

/** Called now and then with the number of rows seen so far. */
export type Progress = (seen: number) => void;

const PROGRESS_EVERY = 500;

/** Characters of rows that are handed on together: a step a row would cost as much as the row. */
const BATCH = 16_384;

/** Makes the staging table of this session. It vanishes with it. */
export async function createStaging(sql: SessionSql): Promise<void> {
  await sql`
    create temporary table staged_offers (
      region_code text not null,
      name text not null,
      cpu integer not null,
      ram numeric not null,
      ram_unit text not null,
      source_amount numeric not null,
      source_per text not null,
      source_currency text not null,
      price numeric(38, 18),
      excluded_reason text
    )`;
  // What the planner has to know of a million rows a sample of three thousand tells, and a tenth of the time.
  await sql`set default_statistics_target = 10`;
}

/**
 * Copies every offer into the staging table.
 * @throws SourceError when the adapter fails: a batch is whole or it is nothing.
 */
export async function stageCatalogue(
  sql: SessionSql,
  items: AsyncIterable<CatalogueItem>,
  pricing: Pricing,
  progress: Progress = () => {},
): Promise<Fetched> {
  const regions = new Map<string, string>();
  const rejected: RejectedKey[] = [];
  const totals: { of: string; advertised: number; fetched: number }[] = [];
  const documents: DocumentItem[] = [];
  const minutePrice = minutePricer(pricing.currency, pricing.rates);
  const offered = new Set<string>();
  const unread = new Map<string, string>();
  const asOf = new Map<string | undefined, string>();
  let lastOffered: string | undefined;
  let seen = 0;
  let offers = 0;
  let waiting = 0;
  let told = 0;
  const turns = new Turns();

  async function* lines(): AsyncGenerator<string> {
    let text = '';
    for await (const item of items) {
      switch (item.kind) {
        case 'region':
          regions.set(item.code, item.name);
          break;
        case 'rejected':
          seen += 1;
          if (item.waits) waiting += 1;
          if (rejected.length <= REJECTED_KEPT) rejected.push(item);
          break;
        case 'unread': {
          seen += 1;
          const before = unread.get(item.regionCode);
          unread.set(item.regionCode, before === undefined ? item.reason : `${before}; ${item.reason}`);
          break;
        }
        case 'as-of':
          asOf.set(item.regionCode, item.time);
          break;
        case 'total':
          totals.push(item);
          break;
        case 'version':
        case 'unmodified':
          documents.push(item);
          break;
        case 'offer':
          seen += 1;
          offers += 1;
          if (item.offer.regionCode !== lastOffered) {
            lastOffered = item.offer.regionCode;
            offered.add(lastOffered);
          }
          text += copyLine(item.offer, minutePrice(item.offer.price));
          if (text.length < BATCH) break;
          yield text;
          text = '';
          break;
      }
      if (turns.isOver()) await turns.pass();
      if (seen < told + PROGRESS_EVERY) continue;
      told = seen;
      progress(seen);
    }
    if (text !== '') yield text;
  }

  await copyLines(sql, 'staged_offers', lines());
  progress(seen);
  const regionsUnread = [...unread].map(([code, reason]) => unreadRegion(code, reason));
  const all = [...regionsUnread, ...rejected];
  return { regions, rejected: all, waiting, seen, offers, totals, documents, offered, unread, asOf };
}

function copyLine(offer: Offer, price: string | undefined): string {
  const { regionCode, name, cpu, ram, ramUnit, price: source } = offer;
  const excluded = exclusion(offer, price) ?? COPY_NULL;
  return `${copyField(regionCode)}\t${copyField(name)}\t${cpu}\t${ram}\t${ramUnit}\t${source.amount}\t${source.per}\t${source.currency}\t${price ?? COPY_NULL}\t${excluded}\n`;
}

/**
 * A missing exchange rate is not decided here: the stored price may be kept, see store/catalogue-diff.ts. An amount so
 * small that nothing of it is left at the scale of prices is a zero price too.
 */
function exclusion(offer: Offer, price: string | undefined): string | undefined {
  // A computed price is the shortest decimal: whether it is positive shows at once.
  const costs = price === undefined ? isPositive(offer.price.amount) : price !== '0' && price[0] !== '-';
  return offer.excluded ?? (costs ? limitBroken(offer) : 'zero_price');
}

/** The guard's limit per minute, rounded as every price is, so that a price at the limit is not above it. */
export function highestPrice(hourly: number, { currency }: Pricing): string {
  const price = pricePerMinute({ amount: decimal(hourly) ?? '0', per: 'hour', currency }, currency, {});
  return price ?? '0';
}
