/** SQL for the facts of machines, derived from `MACHINE_FACTS`. */
import { FACT_FIELDS, MACHINE_FACTS, type MachineFacts } from '../domain/machine-facts.ts';
import { type Column, type PgColumn, type SQL, sql } from './connection/drizzle.ts';

type FactColumns<C> = Record<keyof MachineFacts, C>;

export function factsOf(columns: FactColumns<PgColumn>): FactColumns<PgColumn> {
  return Object.fromEntries(FACT_FIELDS.map((field) => [field, columns[field]])) as FactColumns<PgColumn>;
}

/** Returns `Partial<MachineFacts>` as jsonb; null if none is known. */
export function factsJson(of: FactColumns<Column>): SQL {
  const pairs = FACT_FIELDS.map((field) => sql`${sql.raw(`'${field}'`)}, ${of[field]}`);
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
    const { column } = MACHINE_FACTS[field];
    return `'${names === 'fields' ? field : column}', ${machine}.${column}`;
  }).join(', ');
}

export function selectedFacts(machine: string): string {
  return FACT_FIELDS.map((field) => {
    const { column, type } = MACHINE_FACTS[field];
    return `${machine}.${column}${type === 'number' ? '::float8' : ''} as "${field}"`;
  }).join(', ');
}
