import { z } from 'zod';
import { decimal, product } from '../../domain/price.ts';

const LARGEST_INTEGER = 2_147_483_647;
const LARGEST_AMOUNT = 1_000_000_000;

/** Text of 1 to 255 characters without control characters: Postgres can hold it, and one line of output can show it. */
export const label = z
  .string({ error: (issue) => mustBe('text', issue.input) })
  .refine((text) => /^[^\p{Cc}\p{Cs}]{1,255}$/u.test(text), {
    error: 'must be text of 1 to 255 characters without control characters',
  });

/** A whole number above 0 that an `integer` column holds. */
export const count = wholeNumber(1);

/** The same from 0. */
export const countOrNone = wholeNumber(0);

/** A quantity above 0, e.g. of memory. */
export const quantity = z
  .number({ error: (issue) => mustBe('a number above 0', issue.input) })
  .positive({ error: 'must be a number above 0' })
  // Beyond it, what is counted from it would not be exact.
  .max(Number.MAX_SAFE_INTEGER, { error: 'is beyond any machine' });

/**
 * A price's amount, number or string, as a plain decimal string (domain/price.ts). Zero is legal here; `offerItem`
 * excludes a machine that costs nothing.
 */
export const amount = amountIn('1');

/** The same of a source that counts in a fraction of its currency: `amountIn('0.01')` reads cents, exactly. */
export function amountIn(unit: string) {
  return z
    .union([z.string(), z.number()], { error: (issue) => mustBe('a decimal amount', issue.input) })
    .transform((value, context) => {
      const sent = decimal(value);
      const exact = sent === undefined || unit === '1' ? sent : product(sent, unit);
      const problem = exact === undefined ? 'must be a decimal amount' : problemOfAmount(exact);
      if (problem === undefined && exact !== undefined) return exact;
      context.addIssue({ code: 'custom', message: problem ?? 'must be a decimal amount' });
      return z.NEVER;
    });
}

/** An ISO 4217 code. */
export const currencyCode = z
  .string({ error: (issue) => mustBe('a currency code such as USD', issue.input) })
  .regex(/^[A-Z]{3}$/, { error: 'must be a currency code such as USD' });

/**
 * The token of the next page, or the link to it, in an API that omits it on the last page by its own documentation. In
 * any other API the field is `z.string().nullable()` and required: where it is missing, the list would end unnoticed.
 */
export const omittedAtEnd = z
  .string()
  .nullish()
  .transform((next) => next ?? null);

/** One of a few words. */
export function oneOf<const Words extends readonly [string, ...string[]]>(words: Words) {
  const what = `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
  return z.enum(words, { error: ({ input }) => mustBe(what, input) });
}

function wholeNumber(from: 0 | 1) {
  const what = from === 0 ? 'a whole number, 0 or above' : 'a whole number above 0';
  return z
    .number({ error: (issue) => mustBe(what, issue.input) })
    .refine((value) => Number.isInteger(value) && value >= from && value <= LARGEST_INTEGER, {
      error: `must be ${what}`,
    });
}

function mustBe(what: string, input: unknown): string {
  return input === undefined ? `is missing; it must be ${what}` : `must be ${what}`;
}

function problemOfAmount(exact: string): string | undefined {
  if (exact.startsWith('-')) return 'must not be negative';
  if (Number(exact) > LARGEST_AMOUNT || exact.length > 50) return 'is beyond any price';
  return undefined;
}
