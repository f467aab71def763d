/** Reads what costs are calculated from: clusters, the index of machines, the price book, and stored prices. */

import { lruOfEntries } from '../../domain/lru.ts';
import { bookForTerm } from '../../domain/prices/price-book.ts';
import { steadyNow } from '../../domain/steady-now.ts';
import {
  type CatalogueIndex,
  type Entries,
  type FoundMachine,
  findMachine,
  NO_ENTRIES,
  PriceBooks,
  type SearchState,
} from '../../market/market.ts';
import { type Answer, type MaybePromise, Unavailable, whenThere } from '../../snapshot/document/answer.ts';
import type { Body } from '../../snapshot/document/body.ts';
import { entriesOf } from '../../snapshot/document/price-book.ts';
import type { Documents } from '../../snapshot/read/documents.ts';
import { boundedBy } from '../../snapshot/read/freshness.ts';
import type { TieredResult } from '../../snapshot/read/tiers/tier.ts';
import type { PriceInputs, PriceQuestion } from './prices.ts';
import { NO_MACHINES, StoredMachineReader } from './stored-machines.ts';

export interface CostsOptions {
  readonly documents: Pick<Documents, 'get' | 'postgres'>;
  readonly catalogue: { get(): MaybePromise<SearchState> };
  readonly books?: PriceBooks;
  /** Bytes for calculated costs. */
  readonly memoryLimit: number;
  readonly staleLimitMs: number;
  readonly now?: () => number;
}

/** Everything that prices of an organization's machines depend on. */
export interface Inputs extends PriceInputs {
  readonly clusters: TieredResult;
  /** Undefined for list prices. */
  readonly priceBook: TieredResult | undefined;
  readonly entries: Entries;
  readonly state: SearchState;
}

/** Machines as one index has them, except for their rows. A publication makes another index. */
interface Known {
  readonly index: CatalogueIndex;
  readonly machines: ReadonlyMap<number, FoundMachine>;
}

const SINGLE_AT_MOST = 5000;

export class InputReader {
  readonly #options: CostsOptions;
  readonly #stored: StoredMachineReader;
  readonly #machines = new WeakMap<ReadonlySet<number>, Known>();
  readonly #single = lruOfEntries<number, FoundMachine>(SINGLE_AT_MOST);
  readonly books: PriceBooks;

  constructor(options: CostsOptions) {
    const { documents, staleLimitMs, now = steadyNow } = options;
    this.#options = options;
    this.books = options.books ?? new PriceBooks({ documents, now });
    this.#stored = new StoredMachineReader({ documents, staleLimitMs, now });
  }

  clusters(organizationId: number): MaybePromise<TieredResult> {
    return this.#options.documents.get({ kind: 'clusters', organizationId });
  }

  /** Returns the inputs for machines, without a promise if memory has all of them. Rejects with `Unavailable`. */
  get(
    organizationId: number,
    clusters: TieredResult,
    ids: ReadonlySet<number>,
    question: PriceQuestion,
  ): MaybePromise<Inputs> {
    const { documents, catalogue } = this.#options;
    const reading =
      question.prices === 'own' ? documents.get({ kind: 'price-book', organizationId }) : undefined;
    return whenThere(reading, (priceBook) =>
      whenThere(catalogue.get(), (state) => {
        const entries = priceBook ? entriesOf(priceBook.document) : NO_ENTRIES;
        const { term, at } = question;
        const book =
          at === undefined ? this.books.book(entries, term) : bookForTerm(entries, term, Date.parse(at));
        const machines = this.#machinesOf(state.index, ids);
        // The index has current prices only.
        const missing = [...ids].filter((id) => at !== undefined || !machines.has(id));
        const stored = missing.length === 0 ? NO_MACHINES : this.#stored.get(organizationId, missing, at);
        return whenThere(stored, (found) => {
          const priced = { machines, stored: found, book, question };
          const inputs = { clusters, priceBook, entries, state, ...priced };
          currencyOf(inputs);
          return inputs;
        });
      }),
    );
  }

  /** Returns the same map, and the same machines in it, until a publication changes their regions. */
  #machinesOf(index: CatalogueIndex, ids: ReadonlySet<number>): ReadonlyMap<number, FoundMachine> {
    const known = this.#machines.get(ids);
    if (known?.index === index) return known.machines;
    const machines = new Map<number, FoundMachine>();
    const wanted = new Set<number>();
    for (const id of ids) {
      const before = known?.machines.get(id);
      if (before && index.regions[before.place] === before.region) machines.set(id, before);
      else wanted.add(id);
    }
    const others = this.#find(index, wanted);
    for (const machine of others) machines.set(machine.id, machine);
    const isSame = others.length === 0 && machines.size === known?.machines.size;
    const found = isSame && known ? known.machines : machines;
    this.#machines.set(ids, { index, machines: found });
    return found;
  }

  #find(index: CatalogueIndex, ids: ReadonlySet<number>): readonly FoundMachine[] {
    return [...ids].flatMap((id) => {
      const known = this.#single.get(id);
      const found = known && index.regions[known.place] === known.region ? known : findMachine(index, id);
      if (found) this.#single.set(id, found);
      return found ?? [];
    });
  }
}

/** Returns the currency of all inputs. @throws Unavailable while prices are being converted to another one */
function currencyOf({ clusters, priceBook, state, stored }: Inputs): string | undefined {
  const currencies = new Set(
    [
      clusters.document?.currency,
      priceBook?.document?.currency,
      state.index.regions[0]?.currency,
      ...[...stored.values()].map(({ currency }) => currency ?? undefined),
    ].filter((currency) => currency !== undefined),
  );
  if (currencies.size > 1) throw new Unavailable('the prices are being converted to another currency');
  return [...currencies][0];
}

/** Makes an answer that states the oldest time of its inputs. @param places of the index; by default those of the machines */
export function costAnswer(
  inputs: Inputs,
  body: Body,
  places: readonly number[] = [...new Set([...inputs.machines.values()].map(({ place }) => place))],
): Answer {
  const { clusters, state, stored } = inputs;
  const times = [
    boundedBy(clusters.knownAt, clusters.asOf),
    ...(places.length === 0 ? [] : [state.asOf(places)]),
    ...[...stored.values()].flatMap(({ asOf, isListed }) => (isListed ? [asOf ?? undefined] : [])),
  ];
  const asOf = times.includes(undefined) ? undefined : times.reduce(earlier);
  return { body, tier: tierOf(inputs), asOf, currency: currencyOf(inputs) };
}

/** Returns the tier of the input that was furthest away. */
function tierOf({ clusters, priceBook, state, stored }: Inputs): Answer['tier'] {
  if (stored.size > 0) return 'postgres';
  const tiers = [clusters.tier, priceBook?.tier ?? 'memory', state.tier];
  return tiers.find((tier) => tier !== 'memory') ?? 'memory';
}

const earlier = (a: string | undefined, b: string | undefined) =>
  a !== undefined && b !== undefined && a < b ? a : b;
