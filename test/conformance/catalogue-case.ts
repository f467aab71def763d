import { readFileSync } from 'node:fs';
import type { ExclusionReason } from '../../src/domain/exclusion.ts';
import type { Offer } from '../../src/domain/machine.ts';
import type { MachineFacts } from '../../src/domain/machine-facts.ts';
import type { BillingPeriod } from '../../src/domain/price.ts';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** One answer of a provider, written by this project's authors from the facts of its format. */
export interface FixturePage {
  readonly path: string;
  /** Which of the adapter's endpoints it is, where that has a `{name}` in place of what the path holds. Default: the path. */
  readonly endpoint?: string;
  /** The whole query with which the adapter must ask for it. */
  readonly query: Readonly<Record<string, string>>;
  readonly json: Json;
  /** Headers that say something of the answer; it has them whatever a test does to the document. */
  readonly headers?: Readonly<Record<string, string>>;
  /** True for one that must be asked for without credentials, whatever the adapter has. */
  readonly anonymous?: boolean;
  /** The field that holds the rows: an array, or a map by name. `''` where the document is the list itself. */
  readonly list: string;
  /** JSON pointers, `*` for any name, to objects whose fields are rows by name, so that one more would be a row. */
  readonly maps?: readonly string[];
  /** When this page alone cannot be read, only this region is held, by a rejected row of that region's code. */
  readonly region?: string;
  /** JSON pointers to fields of this page without any of which the answer, or its row, cannot be used. */
  readonly required: readonly string[];
  /** JSON pointers to prices here of offers that nothing excludes. */
  readonly prices: readonly string[];
}

/** What `test/conformance/<id>.ts` exports as `catalogueCase` for the adapter of that id. */
export interface CatalogueCase {
  /** Today, for the adapter. */
  readonly now: Date;
  /** What the source's URL has behind the host; the paths of the pages are whole all the same. */
  readonly basePath?: string;
  /** The options of a source whose adapter has some; `upstream` is the URL of the one that serves the pages. */
  readonly options?: (upstream: string) => Readonly<Record<string, string>>;
  readonly pages: readonly FixturePage[];
  /** For each endpoint an answer without any row, otherwise well formed. */
  readonly empty: Readonly<Record<string, Json>>;
  /** Endpoints whose answers do not say how many rows there are. */
  readonly uncounted?: readonly string[];
  /** Those of them whose last page omits the field of the next page, by the API's documentation. */
  readonly omitsNext?: readonly string[];
  /** Region codes and names. */
  readonly regions: Readonly<Record<string, string>>;
  readonly offers: readonly Offer[];
  /** Facts of the offers, by the machine's name, or by `name@region` where they differ; none unless given. */
  readonly facts?: Readonly<Record<string, Partial<MachineFacts>>>;
  readonly rejected: readonly { readonly key: string; readonly reason: RegExp }[];
}

interface OfferRest {
  readonly excluded?: ExclusionReason;
  /** `hour` unless given. */
  readonly per?: BillingPeriod;
}

/** Makes the offers of a case: of a machine in a region, with its price and, where there is one, why it is excluded. */
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

/** JSON pointer to the rows of a page. */
export function listPointer({ list }: FixturePage): string {
  return list === '' ? '' : `/${list}`;
}

/** Which of the adapter's endpoints a page is. */
export function endpointOf(page: FixturePage): string {
  return page.endpoint ?? page.path;
}

/** A file of `test/fixtures`. */
export function fixture(path: string): Json {
  return JSON.parse(readFileSync(new URL(`../fixtures/${path}`, import.meta.url), 'utf8')) as Json;
}

/**
 * The case of an adapter.
 * @throws Error when it has none: an adapter that no case covers is not done
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
