import { z } from 'zod';
import { decimal, product } from '../../domain/price.ts';

const LARGEST_INTEGER = 2_147_483_647;
const LARGEST_AMOUNT = 1_000_000_000;

/** Text of 1 to 255 characters without control characters: Postgres can store it, and one line of output can show it. */
export const label = z
  .string({ error: (issue) => mustBe('text', issue.input) })
  .refine((text) => /^[^\p{Cc}\p{Cs}]{1,255}$/u.test(text), {
    error: 'must be text of 1 to 255 characters without control characters',
  });

/** A whole number above 0 that an `integer` column can store. */
export const count = wholeNumber(1);

export const countOrNone = wholeNumber(0);

export const quantity = z
  .number({ error: (issue) => mustBe('a number above 0', issue.input) })
  .positive({ error: 'must be a number above 0' })
  // A larger number is not exact.
  .max(Number.MAX_SAFE_INTEGER, { error: 'is beyond any machine' });

/**
 * A price's amount, number or string, as a plain decimal string (domain/price.ts). Zero is legal here: `offerItem`
 * excludes a machine that costs nothing.
 */
export const amount = amountIn('1');

/** An amount that is counted in a fraction of the currency: `amountIn('0.01')` reads cents, exactly. */
export function amountIn(unit: string) {
  return z
    .union([z.string(), z.number()], { error: (issue) => mustBe('a decimal amount', issue.input) })
    .transform((value, context) => {
      const sent = decimal(value);
      const exact = sent === undefined || unit === '1' ? sent : product(sent, unit);
      if (exact === undefined) return invalid(context, 'must be a decimal amount');
      const problem = problemOfAmount(exact);
      return problem === undefined ? exact : invalid(context, problem);
    });
}

export const currencyCode = z
  .string({ error: (issue) => mustBe('a currency code such as USD', issue.input) })
  .regex(/^[A-Z]{3}$/, { error: 'must be a currency code such as USD' });

/**
 * The token of the next page, or the link to it, in an API whose documentation says that the last page omits it. In any
 * other API the field is `z.string().nullable()` and required: a list without it would end unnoticed.
 */
export const omittedAtEnd = z
  .string()
  .nullish()
  .transform((next) => next ?? null);

export const nameList = z.string().regex(/^[a-z0-9_-]+( *, *[a-z0-9_-]+)*$/i, {
  error: 'must be names separated by commas',
});

export function listedNames(text: string): ReadonlySet<string> {
  return new Set(text.split(',').map((name) => name.trim()));
}

export function oneOf<const Words extends readonly [string, ...string[]]>(words: Words) {
  const what = `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
  return z.enum(words, { error: ({ input }) => mustBe(what, input) });
}

/**
 * Rejects a value in a `transform`.
 * @param path the field with the problem, below the value
 */
export function invalid(
  context: Pick<z.core.$RefinementCtx, 'addIssue'>,
  message: string,
  ...path: PropertyKey[]
): never {
  context.addIssue({ code: 'custom', message, path });
  return z.NEVER;
}

/** Returns a schema's message for a value that is missing or wrong. */
export function mustBe(what: string, input: unknown): string {
  return input === undefined ? `is missing; it must be ${what}` : `must be ${what}`;
}

function wholeNumber(from: 0 | 1) {
  const what = from === 0 ? 'a whole number, 0 or above' : 'a whole number above 0';
  return z
    .number({ error: (issue) => mustBe(what, issue.input) })
    .refine((value) => Number.isInteger(value) && value >= from && value <= LARGEST_INTEGER, {
      error: `must be ${what}`,
    });
}

function problemOfAmount(exact: string): string | undefined {
  if (exact.startsWith('-')) return 'must not be negative';
  if (Number(exact) > LARGEST_AMOUNT || exact.length > 50) return 'is beyond any price';
  return undefined;
}
