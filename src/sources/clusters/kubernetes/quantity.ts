import Big from 'big.js';
import { z } from 'zod';
import type { Offer } from '../../../domain/machine.ts';
import { invalid, mustBe } from '../../schema/fields.ts';

export interface Quantity {
  readonly amount: string;
  /** True for a suffix in powers of 1024 (`Ki` … `Ei`). */
  readonly binary: boolean;
}

const QUANTITY =
  /^([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:(Ki|Mi|Gi|Ti|Pi|Ei)|(n|u|m|k|M|G|T|P|E)|[eE]([+-]?\d{1,2}))?$/;
const MOST_CHARACTERS = 64;
const BINARY = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
const DECIMAL = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const GB = 1e9;
/** Divides by 2^30 exactly: a byte has 30 decimal places, and a quantity a few more. */
const Exact = Big();
Exact.DP = 100;
const LARGEST_INTEGER = 2_147_483_647;
const MOST_BYTES = LARGEST_INTEGER * 10 ** 9;

/** Reads `500m`, `1536Mi`, `2e3`, `1G`, `.5`, `100k` exactly; returns undefined for another text. */
export function parseQuantity(text: string): Quantity | undefined {
  if (text.length > MOST_CHARACTERS) return undefined;
  const [, digits, binary, decimal, exponent] = QUANTITY.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const number = new Big(digits.replace(/^\+|\.$/g, ''));
  if (binary !== undefined) {
    const factor = new Big(1024).pow(BINARY.indexOf(binary) + 1);
    return { amount: number.times(factor).toFixed(), binary: true };
  }
  const power = decimal === undefined ? Number(exponent ?? 0) : 3 * (DECIMAL.indexOf(decimal) - 3);
  return { amount: number.times(new Big(`1e${power}`)).toFixed(), binary: false };
}

export function wholeCores({ amount }: Quantity): number {
  return new Big(amount).round(0, Big.roundUp).toNumber();
}

/** Returns whether bytes count in GiB: in powers of 1024, or without a suffix as whole MiB (8589934592 is 8 GiB). */
function countsInGib({ amount, binary }: Quantity): boolean {
  return binary || new Big(amount).mod(MIB).eq(0);
}

/** Returns bytes, rounded up to whole GiB or GB: a machine's memory is a whole number of its unit. */
export function wholeGigabytes(quantity: Quantity): Pick<Offer, 'ram' | 'ramUnit'> {
  const gib = countsInGib(quantity);
  const ram = new Exact(quantity.amount).div(gib ? GIB : GB).round(0, Big.roundUp);
  return { ram: ram.toNumber(), ramUnit: gib ? 'Binary' : 'Decimal' };
}

/** Returns bytes as exact GiB or GB: `500Mi` is 0.48828125 GiB, `1500M` is 1.5 GB. */
export function diskSize(quantity: Quantity): { readonly size: number; readonly unit: 'GiB' | 'GB' } {
  const gib = countsInGib(quantity);
  const size = new Exact(quantity.amount).div(gib ? GIB : GB).toNumber();
  return { size, unit: gib ? 'GiB' : 'GB' };
}

export const cores = quantityField('a number of cores such as 2 or 500m', (found) => {
  return found.gte(0) && found.lte(LARGEST_INTEGER);
});

export const bytes = quantityField('an amount of memory such as 8Gi', (found) => {
  return found.gte(0) && found.lte(MOST_BYTES);
});

export const volumeSize = quantityField('a size above 0 such as 100Gi', (found) => {
  return found.gt(0) && found.lte(MOST_BYTES);
});

function quantityField(what: string, fits: (amount: Big) => boolean) {
  return z
    .union([z.string(), z.number()], { error: ({ input }) => mustBe(what, input) })
    .transform((value, context) => {
      const found = parseQuantity(String(value));
      return found !== undefined && fits(new Big(found.amount)) ? found : invalid(context, `must be ${what}`);
    });
}
