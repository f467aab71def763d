/** Reads what costs are calculated from: the clusters, the index of machines, and stored prices. */
import type { CatalogueIndex } from '../../snapshot/catalogue/catalogue-index.ts';
import type { SearchState } from '../../snapshot/catalogue/searchable.ts';
import { type Answer, type MaybePromise, Unavailable, whenThere } from '../../snapshot/document/answer.ts';
import { Body, hashOf } from '../../snapshot/document/body.ts';
import type { Documents } from '../../snapshot/read/documents.ts';
import { boundedBy } from '../../snapshot/read/freshness.ts';
import type { TieredResult } from '../../snapshot/read/tiers/tier.ts';
import { isInMemory, type PriceInputs, type PriceQuestion, rowsOf } from './prices.ts';
import { NO_MACHINES, StoredMachineReader } from './stored-machines.ts';

export interface CostsOptions {
  readonly documents: Pick<Documents, 'get' | 'postgres'>;
  readonly catalogue: { get(): MaybePromise<SearchState> };
  /** Bytes for calculated costs. */
  readonly memoryLimit: number;
  readonly staleLimitMs: number;
  readonly now?: () => number;
}

/** Everything that prices of an organization's machines depend on. */
export interface Inputs extends PriceInputs {
  readonly found: TieredResult;
  readonly state: SearchState;
}

/** The rows of machines in one index. A publication makes another index. */
interface KnownRows {
  readonly index: CatalogueIndex;
  readonly rows: ReadonlyMap<number, number>;
}

export class InputReader {
  readonly #options: CostsOptions;
  readonly #stored: StoredMachineReader;
  readonly #rows = new WeakMap<ReadonlySet<number>, KnownRows>();

  constructor(options: CostsOptions) {
    const { documents, staleLimitMs, now = Date.now } = options;
    this.#options = options;
    this.#stored = new StoredMachineReader({ documents, staleLimitMs, now });
  }

  clusters(organizationId: number): MaybePromise<TieredResult> {
    return this.#options.documents.get({ kind: 'clusters', organizationId });
  }

  /** Returns the inputs for machines, without a promise if memory has all of them. Rejects with `Unavailable`. */
  get(
    organizationId: number,
    found: TieredResult,
    ids: ReadonlySet<number>,
    question: PriceQuestion,
  ): MaybePromise<Inputs> {
    return whenThere(this.#options.catalogue.get(), (state) => {
      const { index } = state;
      const rows = this.#rowsOf(index, ids);
      const missing = [...ids].filter((id) => !isInMemory(question) || !rows.has(id));
      const stored =
        missing.length === 0 ? NO_MACHINES : this.#stored.get(organizationId, missing, question.at);
      return whenThere(stored, (machines) => {
        const inputs = { found, state, index, rows, stored: machines, question };
        currencyOf(inputs);
        return inputs;
      });
    });
  }

  #rowsOf(index: CatalogueIndex, ids: ReadonlySet<number>): ReadonlyMap<number, number> {
    const known = this.#rows.get(ids);
    if (known?.index === index) return known.rows;
    const rows = rowsOf(index, ids);
    this.#rows.set(ids, { index, rows });
    return rows;
  }
}

/** Returns the currency of all inputs. @throws Unavailable while prices are being converted to another one */
function currencyOf({ found, index, stored }: Inputs): string | undefined {
  const currencies = new Set(
    [
      found.document?.currency,
      index.regions[0]?.currency,
      ...[...stored.values()].map(({ currency }) => currency ?? undefined),
    ].filter((currency) => currency !== undefined),
  );
  if (currencies.size > 1) throw new Unavailable('the prices are being converted to another currency');
  return [...currencies][0];
}

/** Makes an answer that states the oldest time of its inputs. */
export function costAnswer(inputs: Inputs, body: Body): Answer {
  const { found, state, index, rows, stored } = inputs;
  const places = [...new Set([...rows.values()].map((row) => index.rows.regions[row] as number))];
  const times = [
    boundedBy(found.knownAt, found.asOf),
    ...(places.length === 0 ? [] : [state.asOf(places)]),
    ...[...stored.values()].flatMap(({ asOf, isListed }) => (isListed ? [asOf ?? undefined] : [])),
  ];
  const asOf = times.includes(undefined) ? undefined : times.reduce(earlier);
  const tier = stored.size > 0 ? 'postgres' : found.tier === 'memory' ? state.tier : found.tier;
  return { body, tier, asOf, currency: currencyOf(inputs) };
}

const earlier = (a: string | undefined, b: string | undefined) =>
  a !== undefined && b !== undefined && a < b ? a : b;

export function bodyOf(document: unknown): Body {
  const identity = Buffer.from(JSON.stringify(document));
  return new Body(identity, hashOf(identity), undefined);
}
