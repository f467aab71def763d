import Big from 'big.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BillingPeriod, pricePerMinute, type SourcePrice } from '../../../src/domain/prices/price.ts';
import { runs } from '../../support/random.ts';

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

const Exact = Big();
Exact.DP = 18;
Exact.RM = Exact.roundHalfEven;
Exact.NE = -19;
const MINUTES = { minute: 1, hour: 60, month: 43_800 };

const byBig = ({ amount, per }: SourcePrice, rate = '1') =>
  new Exact(amount).times(rate).div(MINUTES[per]).toFixed();

describe('a price per minute', () => {
  it('equals the result of big.js to the last digit', () => {
    fc.assert(
      fc.property(amount, amount, per, fc.constantFrom('USD', 'EUR'), (text, rate, period, currency) => {
        const price = { amount: text, per: period, currency };
        const rates = { EUR: rate };
        expect(pricePerMinute(price, 'USD', rates)).toBe(byBig(price, currency === 'EUR' ? rate : '1'));
      }),
      { numRuns: runs(20_000) },
    );
  });

  it.each([
    ['0', 'hour'],
    ['0.00', 'month'],
    ['60', 'hour'],
    ['0.0052', 'hour'],
    ['99999999999999', 'minute'],
    ['0.0000000000001', 'month'],
    // Ties in both directions, and a remainder of nines.
    ['0.00000000000003', 'hour'],
    ['0.00000000000009', 'hour'],
    ['1e-7', 'hour'],
    ['-1.5', 'hour'],
    ['59.9999999999999', 'hour'],
  ] as const)('of %s per %s equals the result of big.js', (text, period) => {
    const price = { amount: text, per: period, currency: 'USD' };
    expect(pricePerMinute(price, 'USD', {})).toBe(byBig(price));
  });

  it('rounds ties to even', () => {
    const at = (amount: string) =>
      pricePerMinute({ amount, per: 'hour', currency: 'EUR' }, 'USD', { EUR: '0.000001' });
    expect(at('0.00000000003')).toBe('0');
    expect(at('0.00000000009')).toBe('0.000000000000000002');
    expect(at('0.00000000015')).toBe('0.000000000000000002');
  });

  it('carries into all preceding digits', () => {
    const price = { amount: '59.999999999999', per: 'hour', currency: 'EUR' } as const;
    expect(pricePerMinute(price, 'USD', { EUR: '0.999999999999' })).toBe(byBig(price, '0.999999999999'));
  });

  it('is undefined without an exchange rate', () => {
    expect(
      pricePerMinute({ amount: '1', per: 'hour', currency: 'EUR' }, 'USD', { GBP: '1.27' }),
    ).toBeUndefined();
  });

  it('ignores a rate for the published currency itself', () => {
    expect(pricePerMinute({ amount: '60', per: 'hour', currency: 'USD' }, 'USD', { USD: '2' })).toBe('1');
  });
});
