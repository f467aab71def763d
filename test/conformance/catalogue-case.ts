import { readFileSync } from 'node:fs';
import type { OfferedPlan } from '../../src/domain/database-plan.ts';
import type { ExclusionReason, Offer } from '../../src/domain/machine.ts';
import type { MachineFacts } from '../../src/domain/machine-facts.ts';
import type { BillingPeriod } from '../../src/domain/prices/price.ts';
import type { OfferedRegionPrice } from '../../src/domain/prices/region-price.ts';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** One answer of a provider, written by this project's authors from the facts of its format. */
export interface FixturePage {
  readonly path: string;
  /** The adapter's endpoint, if it contains a `{name}` for a part of the path. Default: the path. */
  readonly endpoint?: string;
  /** The whole query that the adapter must send. */
  readonly query: Readonly<Record<string, string>>;
  readonly json: Json;
  /** Headers with data; tests that change the document keep them. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether it must be requested without credentials, even if the adapter has some. */
  readonly anonymous?: boolean;
  /** The field that contains the rows: an array, or a map by name. `''` if the document is the list itself. */
  readonly list: string;
  /**
   * JSON pointers, `*` for any name, to objects whose fields are rows by name: an additional field would be a row.
   */
  readonly maps?: readonly string[];
  /** If this page cannot be read, only this region is held, by a rejected row with that region's code. */
  readonly region?: string;
  /** JSON pointers to required fields of this page: without one, the answer or its row is unusable. */
  readonly required: readonly string[];
  /** JSON pointers to prices of published offers. */
  readonly prices: readonly string[];
  /** The same for prices of terms and of regions. Without a required field, or with a wrong price, no machine is lost. */
  readonly otherRequired?: readonly string[];
  readonly otherPrices?: readonly string[];
  /** It states only prices of regions: if it cannot be read, the machines are read all the same. */
  readonly additional?: true;
}

/** The export `catalogueCase` of `test/conformance/<id>.ts` for the adapter of that id. */
export interface CatalogueCase {
  /** The present date, for the adapter. */
  readonly now: Date;
  /** Path of the source's URL; the pages have complete paths all the same. */
  readonly basePath?: string;
  /** The options of a source whose adapter has some; `upstream` is the URL of the server of the pages. */
  readonly options?: (upstream: string) => Readonly<Record<string, string>>;
  readonly pages: readonly FixturePage[];
  /** For each endpoint a well-formed answer without rows. */
  readonly empty: Readonly<Record<string, Json>>;
  /** Endpoints whose answers do not state their number of rows. */
  readonly uncounted?: readonly string[];
  /** Those of them whose last page omits the field of the next page, by the API's documentation. */
  readonly omitsNext?: readonly string[];
  readonly regions: Readonly<Record<string, string>>;
  readonly offers: readonly Offer[];
  /** Facts of the offers, by the machine's name, or by `name@region` if they differ; default: none. */
  readonly facts?: Readonly<Record<string, Partial<MachineFacts>>>;
  /** Terms and monthly caps of the offers, by the machine's name, or by `name@region` if they differ; default: none. */
  readonly terms?: Readonly<Record<string, Pick<Offer, 'terms' | 'monthlyCap'>>>;
  /** Prices of the regions, by region code; default: none. */
  readonly regionPrices?: Readonly<Record<string, readonly OfferedRegionPrice[]>>;
  /** Plans of databases, by region code; default: none. */
  readonly databasePlans?: Readonly<Record<string, readonly OfferedPlan[]>>;
  readonly rejected: readonly { readonly key: string; readonly reason: RegExp }[];
}

interface OfferRest {
  readonly excluded?: ExclusionReason;
  /** Default: `hour`. */
  readonly per?: BillingPeriod;
}

/** Returns the offers of a case: machine, region, price, and optionally the exclusion's reason. */
export function offersIn(currency: string, ramUnit: Offer['ramUnit'] = 'Binary') {
  return (
    name: string,
    regionCode: string,
    cpu: number,
    ram: number,
    amount: string,
    rest: OfferRest | ExclusionReason = {},
  ): Offer => {
    const { excluded, per = 'hour' } = typeof rest === 'string' ? { excluded: rest } : rest;
    const offer: Offer = { regionCode, name, cpu, ram, ramUnit, price: { amount, per, currency } };
    return excluded === undefined ? offer : { ...offer, excluded };
  };
}

/** Returns a price of a region with one step. */
export function regionPrice(
  item: OfferedRegionPrice['item'],
  name: string,
  unit: OfferedRegionPrice['unit'],
  amount: string,
  rest: Pick<OfferedRegionPrice, 'per' | 'currency'> & { readonly isDefault?: boolean },
): OfferedRegionPrice {
  return { item, name, unit, isDefault: true, ...rest, tiers: [{ from: '0', amount }] };
}

export function listPointer({ list }: FixturePage): string {
  return list === '' ? '' : `/${list}`;
}

export function endpointOf(page: FixturePage): string {
  return page.endpoint ?? page.path;
}

export function fixture(path: string): Json {
  return JSON.parse(readFileSync(new URL(`../fixtures/${path}`, import.meta.url), 'utf8')) as Json;
}

/**
 * Returns the case of an adapter.
 * @throws Error if there is none: each adapter needs a case
 */
export async function caseOf(id: string): Promise<CatalogueCase> {
  const file = `${id}.ts`;
  const module: { catalogueCase?: CatalogueCase } = await import(new URL(file, import.meta.url).href).catch(
    (cause: unknown) => {
      throw new Error(`no conformance case for the adapter ${id}: write test/conformance/${file}`, { cause });
    },
  );
  if (module.catalogueCase === undefined)
    throw new Error(`test/conformance/${file} must export catalogueCase`);
  return module.catalogueCase;
}
