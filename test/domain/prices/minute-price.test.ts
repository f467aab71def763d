import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { minutePricer } from '../../../src/domain/prices/minute-price.ts';
import { type BillingPeriod, pricePerMinute } from '../../../src/domain/prices/price.ts';

const per = fc.constantFrom<BillingPeriod>('minute', 'hour', 'month');
/** Plain decimals, mostly as short as providers print them. */
const amount = fc
  .tuple(
    fc.oneof(
      fc.bigInt({ min: 0n, max: 10n ** 7n }),
      fc.bigInt({ min: 0n, max: 10n ** 16n }),
      fc.bigInt({ min: 0n, max: 10n ** 24n }),
    ),
    fc.integer({ min: 0, max: 20 }),
  )
  .map(([digits, places]) => {
    const text = digits.toString().padStart(places + 1, '0');
    return places === 0 ? text : `${text.slice(0, -places)}.${text.slice(-places)}`;
  });

describe('prices converted for a whole catalogue', () => {
  it('are to the last digit what one price alone is converted to', () => {
    fc.assert(
      fc.property(amount, amount, per, fc.constantFrom('USD', 'EUR'), (text, rate, period, currency) => {
        const price = { amount: text, per: period, currency };
        const rates = { EUR: rate };
        expect(minutePricer('USD', rates)(price)).toBe(pricePerMinute(price, 'USD', rates));
      }),
      { numRuns: 20_000 },
    );
  });

  it.each([
    ['0', 'hour'],
    ['0.00', 'month'],
    ['60', 'hour'],
    ['0.0052', 'hour'],
    ['99999999999999', 'minute'],
    ['0.0000000000001', 'month'],
    // Ties, to either side, and a remainder of nothing but nines.
    ['0.00000000000003', 'hour'],
    ['0.00000000000009', 'hour'],
    ['1e-7', 'hour'],
    ['-1.5', 'hour'],
    ['59.9999999999999', 'hour'],
  ] as const)('convert %s per %s as one price alone', (text, period) => {
    const price = { amount: text, per: period, currency: 'USD' };
    expect(minutePricer('USD', {})(price)).toBe(pricePerMinute(price, 'USD', {}));
  });

  it('round ties to even', () => {
    const convert = minutePricer('USD', { EUR: '0.000001' });
    const at = (text: string) => convert({ amount: text, per: 'hour', currency: 'EUR' });
    expect(at('0.00000000003')).toBe('0');
    expect(at('0.00000000009')).toBe('0.000000000000000002');
    expect(at('0.00000000015')).toBe('0.000000000000000002');
  });

  it('carry into every digit before them', () => {
    const convert = minutePricer('USD', { EUR: '0.999999999999' });
    const price = { amount: '59.999999999999', per: 'hour', currency: 'EUR' } as const;
    expect(convert(price)).toBe(pricePerMinute(price, 'USD', { EUR: '0.999999999999' }));
  });

  it('are none without an exchange rate', () => {
    expect(
      minutePricer('USD', { GBP: '1.27' })({ amount: '1', per: 'hour', currency: 'EUR' }),
    ).toBeUndefined();
  });

  it('ignore a rate that somebody gives for the published currency itself', () => {
    expect(minutePricer('USD', { USD: '2' })({ amount: '60', per: 'hour', currency: 'USD' })).toBe('1');
  });
});
