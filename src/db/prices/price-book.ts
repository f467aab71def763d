import type { SourcePrice } from '../../domain/prices/price.ts';
import type { ConnectionDatabase } from '../connection/connect.ts';
import { eq, isNotNull } from '../connection/drizzle.ts';
import { priceBookEntries } from '../schema.ts';

/**
 * Converts the fixed prices of all price books from a currency, for a change of the published one. Returns false if the
 * currency has no exchange rate.
 */
export async function restateFixedPrices(
  db: ConnectionDatabase,
  currency: string,
  priceOf: (stated: SourcePrice) => string | undefined,
): Promise<boolean> {
  const { id, price } = priceBookEntries;
  const fixed = await db.select({ id, price }).from(priceBookEntries).where(isNotNull(price));
  for (const entry of fixed) {
    const converted = priceOf({ amount: entry.price ?? '0', per: 'minute', currency });
    if (converted === undefined) return false;
    await db.update(priceBookEntries).set({ price: converted }).where(eq(id, entry.id));
  }
  return true;
}
