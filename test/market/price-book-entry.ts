import type { PriceBookEntry } from '../../src/domain/prices/price-book.ts';

/** Returns an entry for all machines and terms from 2026 on: a discount of 10 %, unless a price is given. */
export const priceBookEntry = (given: Partial<PriceBookEntry>): PriceBookEntry => ({
  id: 1,
  providerId: undefined,
  regionId: undefined,
  family: undefined,
  machineId: undefined,
  term: undefined,
  discount: given.price === undefined ? '10' : undefined,
  price: undefined,
  from: '2026-01-01T00:00:00Z',
  to: undefined,
  ...given,
});
