/** The terms of a machine, by list prices or an organization's own, and the list prices of a region. */
import { databaseOn, inOrganization } from '../../db/connection/client.ts';
import { decimal, percentOff, recurringPrice } from '../../domain/prices/price.ts';
import type { BookForTerm, PriceBookEntry } from '../../domain/prices/price-book.ts';
import type { RegionItem } from '../../domain/prices/region-price.ts';
import { PRICE_TERMS, type PriceTerm, TERM_MINUTES } from '../../domain/prices/term.ts';
import {
  type FoundMachine,
  findMachine,
  PriceBooks,
  type PriceHistory,
  readPriceHistory,
  type SearchState,
  selectedMachine,
} from '../../market/market.ts';
import { type Answer, type MaybePromise, whenThere } from '../../snapshot/document/answer.ts';
import { jsonBody } from '../../snapshot/document/body.ts';
import type { RegionPrice } from '../../snapshot/document/columns.ts';
import type { Documents } from '../../snapshot/read/documents.ts';
import type { RegionPricesDocument, ShownTerm, TermsDocument } from './schemas.ts';

export interface ListPricesOptions {
  readonly documents: Pick<Documents, 'get' | 'postgres'>;
  readonly catalogue: { get(): MaybePromise<SearchState> };
}

export type ListPrices = ReturnType<typeof listPrices>;

/** Its methods return undefined for an unknown id, and may reject with `Unavailable`. */
export function listPrices({ documents, catalogue }: ListPricesOptions) {
  const books = new PriceBooks({ documents });
  return {
    /** The history has list prices. @param organizationId whose own prices the answer has; undefined for list prices */
    terms: (
      id: number,
      withHistory: boolean,
      organizationId: number,
      isOwn: boolean,
    ): MaybePromise<Answer | undefined> =>
      whenThere(books.entries(isOwn ? organizationId : undefined), (entries) =>
        whenThere(catalogue.get(), (state) => {
          const machine = findMachine(state.index, id);
          const bookOfTerm = (term: PriceTerm) => books.book(entries, term);
          if (!machine || machine.kind.isSoldOut) return undefined;
          const answered = (tier: Answer['tier'], history?: PriceHistory): Answer => ({
            body: jsonBody(termsDocument(machine, bookOfTerm, history)),
            tier,
            asOf: state.asOf([machine.place]),
            currency: machine.region.currency,
          });
          if (!withHistory) return answered(state.tier);
          const reading = documents.postgres(
            (client) =>
              inOrganization(databaseOn(client), organizationId, (db) => readPriceHistory(db, id, undefined)),
            { organizationId },
          );
          return reading.then((history) => answered('postgres', history));
        }),
      ),

    region: (id: number): MaybePromise<Answer | undefined> =>
      whenThere(catalogue.get(), (state) => {
        const { index, tier } = state;
        const place = index.regionOf.get(id) ?? -1;
        const found = index.regions[place];
        if (!found) return undefined;
        const prices = found.prices ?? null;
        const document: RegionPricesDocument = {
          region: found.region,
          provider: found.provider,
          block_storage: shownPrices(prices, 'block_storage'),
          traffic_out: shownPrices(prices, 'traffic_out'),
          ipv4: shownPrices(prices, 'ipv4'),
        };
        return { body: jsonBody(document), tier, asOf: state.asOf([place]), currency: found.currency };
      }),
  };
}

function termsDocument(
  machine: FoundMachine,
  bookOfTerm: (term: PriceTerm) => BookForTerm,
  history: PriceHistory | undefined,
): TermsDocument {
  const { id, name, region } = machine;
  const books = PRICE_TERMS.map((term) => ({ term, book: bookOfTerm(term) }));
  const isOwn = books.some(({ book }) => book.entries.length > 0);
  const terms = books.flatMap(({ term, book }): ShownTerm[] => {
    const list = currentOf(machine, term);
    if (!list) return [];
    const now = isOwn ? withBook(list, book.entryOf(selectedMachine(machine))) : list;
    return [history ? { ...now, ...historyOf(term, history) } : now];
  });
  return { id, name, provider: region.provider, region: region.region, terms };
}

/** A discount also lowers what the list price consists of. A fixed price has no such parts. */
function withBook(list: ShownTerm, entry: PriceBookEntry | undefined): ShownTerm {
  if (!entry) return { ...list, price_source: 'current' };
  const source = { price_source: 'book', list_price: list.price } as const;
  if (entry.price !== undefined) {
    const price = Number(entry.price);
    return { ...list, price, recurring_price: price, upfront: null, monthly_cap: null, ...source };
  }
  const lowered = (amount: number) => Number(percentOff(decimal(amount) ?? '0', entry.discount ?? '0'));
  const orNone = (amount: number | null) => (amount === null ? null : lowered(amount));
  return {
    ...list,
    price: lowered(list.price),
    recurring_price: lowered(list.recurring_price),
    upfront: orNone(list.upfront),
    monthly_cap: orNone(list.monthly_cap),
    ...source,
  };
}

function currentOf(
  { price, terms, monthlyCap, termsSince }: FoundMachine,
  term: PriceTerm,
): ShownTerm | undefined {
  if (term === 'on_demand') {
    const cap = monthlyCap ?? null;
    return { term, price, recurring_price: price, upfront: null, monthly_cap: cap, since: null };
  }
  const found = terms[term];
  if (!found) return undefined;
  const upfront = found.upfront ?? null;
  const minutes = TERM_MINUTES[term];
  const isPaidOnce = upfront !== null && minutes !== undefined;
  return {
    term,
    price: found.price,
    recurring_price: isPaidOnce ? recurringPrice(found.price, upfront, minutes) : found.price,
    upfront,
    monthly_cap: null,
    since: termsSince === undefined ? null : new Date(termsSince).toISOString(),
  };
}

/** Returns the periods of a term, the newest first. A row that changes only another term starts no period. */
function historyOf(term: PriceTerm, { prices, terms }: PriceHistory): Pick<ShownTerm, 'history' | 'since'> {
  const number = (amount: string | null | undefined) => (amount == null ? null : Number(amount));
  const rows =
    term === 'on_demand'
      ? prices.map(({ price, from, to }) => ({ list_price: number(price), upfront: null, from, to }))
      : terms.map(({ terms: { terms: stored }, from, to }) => ({
          list_price: number(stored[term]?.price),
          upfront: number(stored[term]?.upfront),
          from,
          to,
        }));
  const history: NonNullable<ShownTerm['history']> = [];
  for (const { list_price, ...row } of rows) {
    if (list_price === null || list_price === 0) continue;
    const newer = history.at(-1);
    const isSame = newer?.list_price === list_price && newer.upfront === row.upfront;
    if (newer && isSame && newer.from === row.to) history[history.length - 1] = { ...newer, from: row.from };
    else history.push({ list_price, ...row });
  }
  const [current] = history;
  return { history, since: current?.to === null ? current.from : null };
}

/** Returns the prices of an item; null if none is known. */
function shownPrices(
  prices: readonly RegionPrice[] | null,
  item: RegionItem,
): RegionPricesDocument[RegionItem] {
  const ofItem = prices?.filter((price) => price.item === item) ?? [];
  if (ofItem.length === 0) return null;
  return ofItem.map(({ name, isDefault, unit, per, tiers }) => ({
    name,
    default: isDefault,
    unit,
    per: per === undefined ? 'unit' : 'minute',
    included: includedIn(tiers),
    tiers: tiers.map(({ from, price }) => ({ from: Number(from), price: Number(price) })),
  }));
}

function includedIn(tiers: RegionPrice['tiers']): number | null {
  const paid = tiers.find(({ price }) => Number(price) > 0);
  return paid === undefined ? null : Number(paid.from);
}
