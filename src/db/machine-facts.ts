/** SQL for the facts of machines, derived from `MACHINE_FACTS`. */
import { FACT_FIELDS, MACHINE_FACTS, type MachineFacts } from '../domain/machine-facts.ts';
import { type Column, type PgColumn, type SQL, sql } from './connection/drizzle.ts';
import { instantText, rfc3339 } from './connection/statements.ts';

type FactColumns<C> = Record<keyof MachineFacts, C>;

export function factsOf(columns: FactColumns<PgColumn>): FactColumns<PgColumn> {
  return Object.fromEntries(FACT_FIELDS.map((field) => [field, columns[field]])) as FactColumns<PgColumn>;
}

/** Returns `Partial<MachineFacts>` as jsonb; null if none is known. */
export function factsJson(of: FactColumns<Column>): SQL {
  const pairs = FACT_FIELDS.map((field) => {
    const value = MACHINE_FACTS[field].type === 'time' ? rfc3339(of[field]) : of[field];
    return sql`${sql.raw(`'${field}'`)}, ${value}`;
  });
  return sql`case when num_nonnulls(${listOf(of)}) > 0
    then jsonb_strip_nulls(jsonb_build_object(${sql.join(pairs, sql`, `)})) end`;
}

export function factsDiffer(one: FactColumns<Column>, other: FactColumns<Column>): SQL {
  return sql`((${listOf(one)}) is distinct from (${listOf(other)}))`;
}

function listOf(of: FactColumns<Column>): SQL {
  return sql.join(
    FACT_FIELDS.map((field) => sql`${of[field]}`),
    sql`, `,
  );
}

export function factPairs(machine: string, names: 'fields' | 'columns'): string {
  return FACT_FIELDS.map((field) => {
    const { column, type } = MACHINE_FACTS[field];
    const value = `${machine}.${column}`;
    return `'${names === 'fields' ? field : column}', ${type === 'time' ? instantText(value, 's') : value}`;
  }).join(', ');
}

export function selectedFacts(machine: string): string {
  return FACT_FIELDS.map((field) => {
    const { column, type } = MACHINE_FACTS[field];
    return `${AS_READ[type](`${machine}.${column}`)} as "${field}"`;
  }).join(', ');
}

/** How a driver reads a fact. */
const AS_READ = {
  text: (value: string) => value,
  number: (value: string) => `${value}::float8`,
  time: (value: string) => instantText(value, 's'),
};
