import { expect, it } from 'vitest';
import { type StockChange, stockPeriods } from '../../src/db/stock.ts';

it('states no period before the newest 1,000 changes, because its begin is not known', () => {
  const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
  /** The newest first, as the statement has them: one more than an answer may have. */
  const changes = Array.from({ length: 1001 }, (_, i): StockChange => {
    const isSoldOut = i % 2 === 0;
    const [before, after] = isSoldOut
      ? (['available', 'sold_out'] as const)
      : (['sold_out', 'available'] as const);
    return { at: at(2000 - i), before, after };
  });
  const stored = { stock: 'sold_out', times: null, createdAt: at(0), version: 1 } as const;
  const all = stockPeriods({ ...stored, changes: changes.slice(0, 1000) });
  expect([all.length, all.at(-1)]).toEqual([1001, { stock: 'sold_out', from: at(0), to: at(1001) }]);
  const newest = stockPeriods({ ...stored, changes });
  expect([newest.length, newest.at(-1)]).toEqual([
    1000,
    { stock: 'available', from: at(1001), to: at(1002) },
  ]);
});
