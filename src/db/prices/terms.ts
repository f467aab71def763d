/** SQL for periods and terms of prices, see domain/prices. */
import { PERIOD_MINUTES } from '../../domain/prices/price.ts';
import { TERM_MINUTES, TERMS } from '../../domain/prices/term.ts';
import { type SQL, type SQLWrapper, sql } from '../connection/drizzle.ts';

const cases = (minutes: Readonly<Record<string, number | undefined>>) =>
  Object.entries(minutes)
    .map(([name, each]) => `when '${name}' then ${each ?? 'null'}`)
    .join(' ');

/** The minutes of a period, and those that a payment upfront lasts: `case <name> ${PERIOD_CASES} end`. */
export const PERIOD_CASES = cases(PERIOD_MINUTES);
export const TERM_CASES = cases(TERM_MINUTES);

/** Returns what the source states of `StoredTerms`, without the converted amounts. */
export function statedTerms(terms: SQLWrapper): SQL {
  return sql`jsonb_build_array(jsonb_path_query_array(${terms}, '$.terms.keyvalue().key'),
    jsonb_path_query_array(${terms}, '$.terms.*.source'), ${terms} #> '{monthly_cap,source}')`;
}

/** Returns true if `after` lacks a term, or the monthly cap, of `before`. */
export function losesTerms(before: SQLWrapper, after: SQLWrapper): SQL {
  const lost = (of: SQL, name: string) =>
    sql`(${before}${of} ? ${sql.raw(`'${name}'`)} and not coalesce(${after}${of} ? ${sql.raw(`'${name}'`)}, false))`;
  const each = [...TERMS.map((term) => lost(sql` -> 'terms'`, term)), lost(sql``, 'monthly_cap')];
  return sql`coalesce(${sql.join(each, sql` or `)}, false)`;
}

/** Returns the terms as an adapter's offer states them: its fields `terms` and `monthlyCap`. */
export function offeredTerms(terms: SQLWrapper): { readonly terms: SQL; readonly monthlyCap: SQL } {
  return {
    terms: sql`(select jsonb_object_agg(key, value -> 'source') from jsonb_each(${terms} -> 'terms'))`,
    monthlyCap: sql`${terms} #>> '{monthly_cap,source,amount}'`,
  };
}
