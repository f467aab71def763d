import Big from 'big.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  diskSize,
  parseQuantity,
  wholeCores,
  wholeGigabytes,
} from '../../../src/sources/clusters/kubernetes/quantity.ts';

const SUFFIXES: Readonly<Record<string, Big>> = {
  '': new Big(1),
  n: new Big('1e-9'),
  u: new Big('1e-6'),
  m: new Big('1e-3'),
  k: new Big('1e3'),
  M: new Big('1e6'),
  G: new Big('1e9'),
  T: new Big('1e12'),
  P: new Big('1e15'),
  E: new Big('1e18'),
  e0: new Big(1),
  'e+3': new Big('1e3'),
  E2: new Big('1e2'),
  'e-2': new Big('1e-2'),
  Ki: new Big(1024),
  Mi: new Big(1024).pow(2),
  Gi: new Big(1024).pow(3),
  Ti: new Big(1024).pow(4),
  Pi: new Big(1024).pow(5),
  Ei: new Big(1024).pow(6),
};

const digits = fc.oneof(
  fc.bigInt({ min: 0n, max: 10n ** 18n }).map(String),
  fc
    .tuple(fc.bigInt({ min: 0n, max: 10n ** 12n }), fc.stringMatching(/^[0-9]{1,18}$/))
    .map(([whole, fraction]) => `${whole}.${fraction}`),
);

function parsed(text: string) {
  const found = parseQuantity(text);
  if (found === undefined) throw new Error(`${text} is no quantity`);
  return found;
}

describe('a quantity', () => {
  it('is its digits times its suffix, exactly', () => {
    fc.assert(
      fc.property(digits, fc.constantFrom(...Object.entries(SUFFIXES)), (number, [suffix, factor]) => {
        const { amount, binary } = parsed(number + suffix);
        expect(new Big(amount).eq(new Big(number).times(factor))).toBe(true);
        expect(binary).toBe(suffix.endsWith('i'));
      }),
    );
  });

  it('is never rounded down, and rounded up by less than one whole', () => {
    fc.assert(
      fc.property(digits, fc.constantFrom(...Object.keys(SUFFIXES)), (number, suffix) => {
        const found = parsed(number + suffix);
        const { ram, ramUnit } = wholeGigabytes(found);
        fc.pre(Number.isSafeInteger(ram));
        const each = ramUnit === 'Binary' ? new Big(1024).pow(3) : new Big('1e9');
        const rounded = new Big(ram).times(each);
        expect(rounded.gte(found.amount)).toBe(true);
        expect(rounded.minus(each).lt(found.amount)).toBe(true);
        fc.pre(Number.isSafeInteger(wholeCores(found)));
        expect(new Big(wholeCores(found)).gte(found.amount)).toBe(true);
        expect(new Big(wholeCores(found)).minus(1).lt(found.amount)).toBe(true);
      }),
    );
  });

  it('is rejected if it is any other text', () => {
    const shape = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$/;
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'0123456789.eE+-KMGTPi numk') }), (text) => {
        expect(parseQuantity(text) !== undefined).toBe(shape.test(text) && text.length <= 64);
      }),
    );
  });

  it.each([
    '',
    ' ',
    '1 Gi',
    '1gi',
    '1GiB',
    '1K',
    '0x10',
    '1e1000',
    '1,5',
    '--1',
    'NaN',
    'Infinity',
    '٣',
    '1'.repeat(65),
  ])('is not %j', (text) => {
    expect(parseQuantity(text)).toBeUndefined();
  });

  it.each([
    ['500m', 1],
    ['1', 1],
    ['1001m', 2],
    ['.5', 1],
    ['2e3', 2000],
    ['0', 0],
    ['2.', 2],
  ])('%s of a core is %d whole', (text, cores) => {
    expect(wholeCores(parsed(text))).toBe(cores);
  });

  it.each([
    ['8Gi', 8, 'Binary'],
    ['1536Mi', 2, 'Binary'],
    ['1Ti', 1024, 'Binary'],
    ['1G', 1, 'Decimal'],
    ['1500M', 2, 'Decimal'],
    ['100k', 1, 'Decimal'],
    ['1T', 1000, 'Decimal'],
    ['2e9', 2, 'Decimal'],
    ['8589934592', 8, 'Binary'],
    ['8589934592000m', 8, 'Binary'],
    ['8000000000', 8, 'Decimal'],
    ['8589934592.5', 9, 'Decimal'],
  ] as const)('%s of memory are %d %s', (text, amount, unit) => {
    expect(wholeGigabytes(parsed(text))).toEqual({ ram: amount, ramUnit: unit });
  });

  it.each([
    ['500Mi', 0.48828125, 'GiB'],
    ['1536Mi', 1.5, 'GiB'],
    ['0.1Gi', 0.1, 'GiB'],
    ['1.5Ti', 1536, 'GiB'],
    ['1Ei', 1024 ** 3, 'GiB'],
    ['1Ki', 2 ** -20, 'GiB'],
    ['128974848', 0.1201171875, 'GiB'],
    ['8589934592', 8, 'GiB'],
    ['1500M', 1.5, 'GB'],
    ['1e12', 1000, 'GB'],
    ['129e6', 0.129, 'GB'],
    ['100k', 0.0001, 'GB'],
    ['1', 1e-9, 'GB'],
    // Kubernetes itself writes 0.1Gi like this.
    ['107374182400m', 0.1073741824, 'GB'],
  ] as const)('a volume of %s has exactly %d %s', (text, size, unit) => {
    expect(diskSize(parsed(text))).toEqual({ size, unit });
  });

  it('of a volume is the number nearest to its bytes', () => {
    fc.assert(
      fc.property(digits, fc.constantFrom(...Object.keys(SUFFIXES)), (number, suffix) => {
        const found = parsed(number + suffix);
        const { size, unit } = diskSize(found);
        const each = unit === 'GiB' ? new Big(1024).pow(3) : new Big('1e9');
        const difference = new Big(size).times(each).minus(found.amount).abs();
        expect(difference.lte(new Big(found.amount).times(Number.EPSILON))).toBe(true);
      }),
    );
  });
});
