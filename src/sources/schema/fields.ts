import { z } from 'zod';
import { isNever } from '../../domain/machine.ts';
import { decimal, product, type SourcePrice } from '../../domain/prices/price.ts';
import { COUNTRY } from '../../domain/region-country.ts';

export const NOTHING_LISTED = 'lists nothing; an empty answer is never taken for "all gone"';

const LARGEST_INTEGER = 2_147_483_647;
const LARGEST_AMOUNT = 1_000_000_000;

/** Text that Postgres can store and one line of output can show. */
export const label = z
  .string({ error: (issue) => mustBe('text', issue.input) })
  .refine((text) => /^[^\p{Cc}\p{Cs}]{1,255}$/u.test(text), {
    error: 'must be text of 1 to 255 characters without control characters',
  });

/** The country of a region. Prices do not depend on it, so another form is no problem of the region. */
export const countryIn = z.string().regex(COUNTRY).optional().catch(undefined);

export const count = wholeNumber(1);
export const countOrNone = wholeNumber(0);

export const quantity = z
  .number({ error: (issue) => mustBe('a number above 0', issue.input) })
  .positive({ error: 'must be a number above 0' })
  // A larger number is not exact.
  .max(Number.MAX_SAFE_INTEGER, { error: 'is beyond any machine' });

/** A price as a plain decimal string. Zero is legal here: `offerItem` excludes a machine that costs nothing. */
export const amount = amountIn('1');

/** An amount that is counted in a fraction of the currency: `amountIn('0.01')` reads cents, exactly. */
export function amountIn(unit: string) {
  return z
    .union([z.string(), z.number()], { error: (issue) => mustBe('a decimal amount', issue.input) })
    .transform((value, context) => {
      const sent = decimal(value);
      const exact = sent === undefined || unit === '1' ? sent : product(sent, unit);
      if (exact === undefined) return invalid(context, 'must be a decimal amount');
      if (exact.startsWith('-')) return invalid(context, 'must not be negative');
      const isPrice = Number(exact) <= LARGEST_AMOUNT && exact.length <= 50;
      return isPrice ? exact : invalid(context, 'is beyond any price');
    });
}

/** The price for an hour in one field of an object, else for a month in another; `monthly` is the latter, if the object has it. */
export function hourlyOrMonthly(hourly: string, monthly: string, currency: string) {
  return z
    .object({ [hourly]: amount.nullish(), [monthly]: amount.nullish() })
    .transform((row, context): { price: SourcePrice; monthly: string | undefined } => {
      const { [hourly]: perHour, [monthly]: perMonth } = row;
      const price = perHour == null ? perMonth : perHour;
      if (price != null) {
        const per = perHour == null ? 'month' : 'hour';
        return { price: { amount: price, per, currency }, monthly: perMonth ?? undefined };
      }
      return invalid(context, `must be a price, unless ${monthly} is one`, hourly);
    });
}

export const currencyCode = z
  .string({ error: (issue) => mustBe('a currency code such as USD', issue.input) })
  .regex(/^[A-Z]{3}$/, { error: 'must be a currency code such as USD' });

/**
 * The next page's token or link, if the API documents that the last page omits it. In any other API the field is
 * `z.string().nullable()` and required: a list without it would end unnoticed.
 */
export const omittedAtEnd = z
  .string()
  .nullish()
  .transform((next) => next ?? null);

/** The rows of a whole list: an empty one never means that everything is gone. */
export const someRows = z.array(z.unknown()).min(1, { error: NOTHING_LISTED });

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

/** Rejects a value in a `transform`. @param path the field with the problem, below the value */
export function invalid(
  context: Pick<z.core.$RefinementCtx, 'addIssue'>,
  message: string,
  ...path: PropertyKey[]
): never {
  context.addIssue({ code: 'custom', message, path });
  return z.NEVER;
}

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

const INSTANT =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d{2}):?(\d{2}))?$/;

/**
 * Returns an instant as UTC `YYYY-MM-DDTHH:MM:SS.ffffff`; undefined for another text, such as a 30th of February. An instant
 * without `Z` or offset is UTC. Digits after the sixth are dropped; a Date would store only three.
 */
export function utcMicroseconds(text: string): string | undefined {
  const match = INSTANT.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHours, offsetMinutes] = match;
  const local = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  // The parser reads a 30th of February as the 1st of March, and 24:00 as the next day.
  if (Number.isNaN(local.getTime()) || !local.toISOString().startsWith(`${year}-${month}-${day}T${hour}`)) {
    return undefined;
  }
  if (Number(offsetHours ?? 0) > 23 || Number(offsetMinutes ?? 0) > 59) return undefined;
  const offset = (Number(offsetHours ?? 0) * 60 + Number(offsetMinutes ?? 0)) * 60_000;
  const utc = new Date(local.getTime() + (sign === '-' ? offset : -offset)).toISOString();
  // Outside the years 0001 to 9999 the text has another form, and Postgres another calendar.
  if (!/^\d{4}-/.test(utc) || utc.startsWith('0000')) return undefined;
  return `${utc.slice(0, 19)}.${fraction.slice(0, 6).padEnd(6, '0')}`;
}

const A_DATE = 'a date such as 2027-01-31';
/** The longest text that `utcMicroseconds` accepts, and some more. */
const LONGEST_INSTANT = 40;

/**
 * The announced end of a sale or of a service: RFC 3339, or a date, which begins at midnight in UTC. It is read as RFC 3339 in UTC,
 * to the second; undefined if it never comes. Another value is a problem of the row: with an unknown end, the machine would stay in
 * the catalogue after it.
 */
export const endTime = z
  .string({ error: (issue) => mustBe(A_DATE, issue.input) })
  .transform((text, context): string | undefined => {
    const time = /^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text;
    if (time.length > LONGEST_INSTANT) return invalid(context, `must be ${A_DATE}`);
    if (isNever(time)) return undefined;
    const utc = utcMicroseconds(time);
    return utc === undefined ? invalid(context, `must be ${A_DATE}`) : `${utc.slice(0, 19)}Z`;
  });
