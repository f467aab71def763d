/** AWS's offers: an index of the regions for each, and a file for each region. */
import { z } from 'zod';
import { entriesOf } from '../../http/json-entries.ts';
import { label } from '../../schema/fields.ts';
import { badAnswer, type StreamAnswer } from '../../source.ts';
import { type Terms, termsOf } from './terms.ts';

export const indexOf = (offer: string) => `/offers/v1.0/aws/${offer}/current/region_index.json`;
export const fileOf = (offer: string) => `/offers/v1.0/aws/${offer}/{version}/{region}/index.json`;

export const Index = z.object({ regions: z.record(z.string(), z.unknown()) });
export const IndexRow = z.object({
  regionCode: label,
  currentVersionUrl: z.string().regex(/^\/[^/]/, { error: 'must be a path that starts with /' }),
});

/** Products of one region that are kept in memory. */
export const MOST_ROWS = 100_000;

export interface FoundProduct<T> {
  readonly sku: string;
  readonly product: T;
  /** On demand; empty if the file has none. */
  terms: Terms;
}

/**
 * Returns the products that `read` accepts, with their terms. A file has products before terms: in another order, products have no
 * terms. @throws SourceError for a file without products
 */
export async function productsIn<T>(
  { body, url }: StreamAnswer,
  read: (sku: string, product: unknown) => T | undefined,
): Promise<FoundProduct<T>[]> {
  const where = url.origin + url.pathname;
  const found = new Map<string, FoundProduct<T>>();
  let listed = 0;
  const entries = entriesOf(body, {
    maps: ['products', 'terms.OnDemand'],
    isWanted: (map, sku) => map === 'products' || found.has(sku),
    where,
  });
  for await (const { map, key: sku, value } of entries) {
    listed += 1;
    if (map === 'products') {
      const product = read(sku, value);
      if (product !== undefined) found.set(sku, { sku, product, terms: {} });
    } else {
      const known = found.get(sku);
      if (known !== undefined) known.terms = termsOf(value);
    }
    if (found.size > MOST_ROWS)
      throw badAnswer(`${where} lists more than ${MOST_ROWS} products of interest; check the source's URL`);
  }
  if (listed === 0) throw badAnswer(`${where} lists nothing in products`);
  return [...found.values()];
}
