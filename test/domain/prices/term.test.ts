import Big from 'big.js';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { BillingPeriod } from '../../../src/domain/prices/price.ts';
import { restatedTerms, storedTerm, TERMS, termsChange } from '../../../src/domain/prices/term.ts';

const plain = (digits: number) =>
  fc
    .tuple(fc.bigInt({ min: 0n, max: 10n ** 9n }), fc.bigInt({ min: 0n, max: 10n ** BigInt(digits) - 1n }))
    .map(([whole, rest]) => `${whole}.${String(rest).padStart(digits, '0')}`);
const MINUTES = { minute: 1, hour: 60, month: 43_800 } as const;
const HOURS = {
  spot: 0,
  savings_plan_1y: 8760,
  savings_plan_3y: 26_280,
  reserved_1y: 8760,
  reserved_3y: 26_280,
};

const Exact = Big();
Exact.DP = 60;
/** Rounds half to even, to 18 places. */
const rounded = (value: Big) => value.round(18, Big.roundHalfEven).toFixed();

it('has an effective price that equals an independent calculation', () => {
  const term = fc.constantFrom(...TERMS);
  const per = fc.constantFrom<BillingPeriod>('minute', 'hour', 'month');
  fc.assert(
    fc.property(term, plain(8), per, fc.option(plain(2)), plain(6), (name, amount, period, once, rate) => {
      const upfront = name === 'spot' ? null : once;
      const source = {
        price: { amount, per: period, currency: 'EUR' },
        ...(upfront === null ? {} : { upfront }),
      };
      const stored = storedTerm(name, source, 'USD', { EUR: rate });
      const recurring = new Exact(amount).div(MINUTES[period]);
      const minutes = HOURS[name] * 60;
      const spread = upfront === null ? recurring : recurring.plus(new Exact(upfront).div(minutes));
      expect(stored).toEqual({
        price: rounded(spread.times(rate)),
        upfront: upfront === null ? null : rounded(new Exact(upfront).times(rate)),
        source,
      });
    }),
  );
});

it('is unknown without an exchange rate', () => {
  const source = { price: { amount: '1', per: 'hour', currency: 'EUR' } } as const;
  expect(storedTerm('spot', source, 'USD', {})).toBeUndefined();
  const stored = storedTerm('spot', source, 'USD', { EUR: '2' }) ?? expect.unreachable();
  const cap = { price: '10', source: { amount: '5', currency: 'EUR' } };
  expect(restatedTerms({ terms: { spot: stored } }, 'CHF', {})).toBeNull();
  expect(restatedTerms({ terms: { spot: stored }, monthly_cap: cap }, 'CHF', { EUR: '3' })).toEqual({
    terms: { spot: { price: '0.05', upfront: null, source } },
    monthly_cap: { price: '15', source: cap.source },
  });
});

it('names only what changes', () => {
  const price = { amount: '1', per: 'hour', currency: 'EUR' } as const;
  const reserved = { price: '1', upfront: '5', source: { price, upfront: '5' } };
  const before = { terms: { spot: { price: '1', upfront: null, source: { price } }, reserved_1y: reserved } };
  const cap = { price: '1', source: { amount: '9', currency: 'EUR' } };
  expect(termsChange(before, before)).toBeUndefined();
  expect(termsChange(before, { terms: { reserved_1y: reserved }, monthly_cap: cap })).toEqual([
    'spot 1 EUR per hour, monthly cap unknown',
    'spot unknown, monthly cap 9 EUR',
  ]);
  expect(termsChange(null, { terms: { reserved_1y: reserved } })).toEqual([
    'reserved_1y unknown',
    'reserved_1y 1 EUR per hour and 5 EUR upfront',
  ]);
});
