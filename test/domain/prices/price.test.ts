import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BillingPeriod,
  decimal,
  isPositive,
  pricePerMinute,
  type SourcePrice,
} from '../../../src/domain/prices/price.ts';
import { runs } from '../../support/random.ts';

const usd = (amount: string, per: BillingPeriod = 'hour'): SourcePrice => ({ amount, per, currency: 'USD' });

/** A non-negative decimal: `digits` / 10^`places`, in any spelling. */
const written = fc
  .record({ digits: fc.bigInt({ min: 0n, max: 10n ** 21n }), places: fc.integer({ min: 0, max: 20 }) })
  .map(({ digits, places }) => {
    const text = digits.toString().padStart(places + 1, '0');
    return { digits, places, text: places === 0 ? text : `${text.slice(0, -places)}.${text.slice(-places)}` };
  });

/** numerator / denominator at 18 places, rounded half to even, with integers only. */
function halfEven(numerator: bigint, denominator: bigint): bigint {
  const scaled = numerator * 10n ** 18n;
  const quotient = scaled / denominator;
  const twice = (scaled % denominator) * 2n;
  const up = twice > denominator || (twice === denominator && quotient % 2n === 1n);
  return up ? quotient + 1n : quotient;
}

/** A plain decimal string as a count of 10^-18. */
function atoms(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(18, '0'));
}

describe('decimal', () => {
  it.each([
    ['0.0052000000', '0.0052'],
    ['0.0061880000000000', '0.006188'],
    ['10', '10'],
    ['10.00', '10'],
    ['0', '0'],
    ['0.000', '0'],
    ['007.50', '7.5'],
    ['.5', '0.5'],
    ['5.', '5'],
    ['+1.25', '1.25'],
    ['-0.5', '-0.5'],
    ['1e-7', '0.0000001'],
    ['2.5E+3', '2500'],
    ['1e21', '1000000000000000000000'],
    ['0.123456789012345678901234567890', '0.12345678901234567890123456789'],
  ])('reads the text %s as %s', (text, expected) => {
    expect(decimal(text)).toBe(expected);
  });

  it.each([
    [0.0052, '0.0052'],
    [5, '5'],
    [1e-7, '0.0000001'],
    [4.5e-10, '0.00000000045'],
    [1e21, '1000000000000000000000'],
    [0.00743999984, '0.00743999984'],
    [0.1 + 0.2, '0.30000000000000004'],
    [-0, '0'],
  ])('reads the number %d as %s', (value, expected) => {
    expect(decimal(value)).toBe(expected);
  });

  it.each([
    '',
    ' ',
    ' 5',
    '5 ',
    '5\n',
    '1,5',
    '1_000',
    '0x10',
    '0b1',
    'NaN',
    'Infinity',
    '-Infinity',
    '1e',
    'e5',
    '.',
    '-',
    '--1',
    '1.2.3',
    '1e1000',
    '٣',
    '5€',
  ])('rejects the text %j', (text) => {
    expect(decimal(text)).toBeUndefined();
  });

  it('rejects a text of 60,000 digits, which a pattern or an exact number would take long to read', () => {
    for (const text of ['1'.repeat(60_000), `${'1'.repeat(60_000)}x`, `1.${'0'.repeat(60_000)}`])
      expect(decimal(text)).toBeUndefined();
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    'rejects the number %d',
    (value) => {
      expect(decimal(value)).toBeUndefined();
    },
  );

  it('keeps every finite double exactly, and without an exponent', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const text = decimal(value);
        expect(text).toMatch(/^-?\d+(\.\d*[1-9])?$/);
        expect(Number(text)).toBe(value === 0 ? 0 : value);
      }),
    );
  });

  it('keeps each written amount exactly, with any zeros around it', () => {
    fc.assert(
      fc.property(
        written,
        fc.nat({ max: 5 }),
        fc.nat({ max: 5 }),
        ({ digits, places, text }, before, after) => {
          const padded = '0'.repeat(before) + text + (text.includes('.') ? '0'.repeat(after) : '');
          const [whole = '', fraction = ''] = (decimal(padded) ?? '').split('.');
          expect(BigInt(whole + fraction) * 10n ** BigInt(places - fraction.length)).toBe(digits);
        },
      ),
    );
  });

  it('reads its result unchanged', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const once = decimal(value) ?? '';
        expect(decimal(once)).toBe(once);
      }),
    );
  });
});

describe('isPositive', () => {
  it.each([
    ['0.0000000000000000001', true],
    ['5', true],
    ['0', false],
    ['0.00', false],
    ['-0.1', false],
  ])('of %s is %s', (amount, expected) => {
    expect(isPositive(amount)).toBe(expected);
  });
});

describe('the price per minute', () => {
  it.each([
    [usd('0.0060'), '0.0001'],
    [usd('0.0052'), '0.000086666666666667'],
    [usd('0.0075'), '0.000125'],
    [usd('0.00743999984'), '0.000123999997333333'],
    [usd('43.8', 'month'), '0.001'],
    [usd('5', 'month'), '0.000114155251141553'],
    [usd('0.00000000045', 'minute'), '0.00000000045'],
    [usd('0'), '0'],
  ])('of %o is %s', (price, expected) => {
    expect(pricePerMinute(price, 'USD', {})).toBe(expected);
  });

  it.each([
    ['0.0000000000000000005', '0'],
    ['0.0000000000000000015', '0.000000000000000002'],
    ['0.0000000000000000025', '0.000000000000000002'],
    ['0.00000000000000000250000000000001', '0.000000000000000003'],
    ['0.0000000000000000035', '0.000000000000000004'],
  ])('rounds a tie at the eighteenth place to the even digit: %s to %s', (amount, expected) => {
    expect(pricePerMinute(usd(amount, 'minute'), 'USD', {})).toBe(expected);
  });

  it('multiplies before it divides: one rounding, not two', () => {
    // 0.0052 / 60 rounded first and then multiplied would give 0.00009360000000000036.
    const price: SourcePrice = { amount: '0.0052', per: 'hour', currency: 'EUR' };
    expect(pricePerMinute(price, 'USD', { EUR: '1.08' })).toBe('0.0000936');
  });

  it('is the exact quotient rounded once, half to even, for any amount, rate and period', () => {
    const periods = fc.constantFrom<[BillingPeriod, bigint]>(
      ['minute', 1n],
      ['hour', 60n],
      ['month', 43_800n],
    );
    fc.assert(
      fc.property(written, written, periods, (amount, rate, [per, minutes]) => {
        const price: SourcePrice = { amount: amount.text, per, currency: 'EUR' };
        const found = pricePerMinute(price, 'USD', { EUR: rate.text }) ?? '';
        const denominator = minutes * 10n ** BigInt(amount.places + rate.places);
        expect(found).toMatch(/^\d+(\.\d{1,18})?$/);
        expect(atoms(found)).toBe(halfEven(amount.digits * rate.digits, denominator));
      }),
      { numRuns: runs(500) },
    );
  });

  it('ignores a rate if the source already uses the published currency', () => {
    expect(pricePerMinute(usd('0.06'), 'USD', { USD: '2' })).toBe('0.001');
  });

  it('is undefined if the currency has no rate', () => {
    const price: SourcePrice = { amount: '0.06', per: 'hour', currency: 'GBP' };
    expect(pricePerMinute(price, 'USD', { EUR: '1.08' })).toBeUndefined();
  });
});
