import Big from 'big.js';
import { z } from 'zod';
import type { MemoryUnit } from '../../../domain/memory.ts';

/** An amount as Kubernetes writes it, in cores or bytes. */
export interface Quantity {
  /** Plain decimal text, exact. */
  readonly amount: string;
  /** Whether it was written in powers of 1024 (`Ki` … `Ei`). */
  readonly binary: boolean;
}

const QUANTITY =
  /^([+-]?(?:\d+\.?\d*|\.\d+))(?:(Ki|Mi|Gi|Ti|Pi|Ei)|(n|u|m|k|M|G|T|P|E)|[eE]([+-]?\d{1,2}))?$/;
/** Longer ones exist in no object, and would only cost time. */
const MOST_CHARACTERS = 64;
const BINARY = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
const DECIMAL: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};

const [MIB, GIB, GB] = [1024n ** 2n, 1024n ** 3n, 10n ** 9n];
const LARGEST_INTEGER = 2_147_483_647;

/** Reads `500m`, `1536Mi`, `2e3`, `1G`, `.5`, `100k` exactly; undefined for what is no quantity. */
export function parseQuantity(text: string): Quantity | undefined {
  if (text.length > MOST_CHARACTERS) return undefined;
  const [, digits, binary, decimal, exponent] = QUANTITY.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const number = new Big(digits.replace(/^\+|\.$/g, ''));
  if (binary !== undefined) {
    const factor = new Big(1024).pow(BINARY.indexOf(binary) + 1);
    return { amount: number.times(factor).toFixed(), binary: true };
  }
  const power = decimal === undefined ? Number(exponent ?? 0) : (DECIMAL[decimal] ?? 0);
  // Through the text: a negative power of a Big would be rounded to its 20 digits.
  return { amount: number.times(new Big(`1e${power}`)).toFixed(), binary: false };
}

/** Cores, rounded up to whole ones: what cannot be shared out is reserved whole. */
export function wholeCores({ amount }: Quantity): number {
  return new Big(amount).round(0, Big.roundUp).toNumber();
}

/**
 * Bytes, rounded up to whole GiB when they were written in powers of 1024, else to whole GB. Bytes without a suffix
 * count as GiB when they are whole MiB: so does a manifest that states 8 GiB as 8589934592.
 */
export function wholeGigabytes({ amount, binary }: Quantity): {
  readonly amount: number;
  readonly unit: MemoryUnit;
} {
  // In whole bytes, rounded up, the division is exact; Big's own is rounded.
  const whole = BigInt(new Big(amount).round(0, Big.roundUp).toFixed());
  const gib = binary || (whole % MIB === 0n && new Big(amount).eq(whole.toString()));
  const each = gib ? GIB : GB;
  return { amount: Number((whole + each - 1n) / each), unit: gib ? 'Binary' : 'Decimal' };
}

/** Cores that a pod asks for. */
export const cores = quantityField('a number of cores such as 2 or 500m', (found) =>
  inRange(found, LARGEST_INTEGER),
);

/** Memory that a pod asks for. */
export const bytes = quantityField('an amount of memory such as 8Gi', (found) =>
  inRange(found, LARGEST_INTEGER * 10 ** 9),
);

/** Size of a volume. */
export const volumeSize = quantityField(
  'a size above 0 such as 100Gi',
  (found) => inRange(found, LARGEST_INTEGER * 10 ** 9) && !new Big(found.amount).eq(0),
);

function inRange({ amount }: Quantity, most: number): boolean {
  return new Big(amount).gte(0) && new Big(amount).lte(most);
}

/** The API takes an integer for text. */
function quantityField(what: string, fits: (found: Quantity) => boolean) {
  return z
    .union([z.string(), z.number()], {
      error: ({ input }) => (input === undefined ? `is missing; it must be ${what}` : `must be ${what}`),
    })
    .transform((value, context) => {
      const found = parseQuantity(String(value));
      if (found !== undefined && fits(found)) return found;
      context.addIssue({ code: 'custom', message: `must be ${what}` });
      return z.NEVER;
    });
}
