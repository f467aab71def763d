import { FACT_FIELDS } from '../../../domain/machine-facts.ts';
import { type Column, type PgColumn, type SQL, sql } from '../../connection/drizzle.ts';

type Fact = (typeof FACT_FIELDS)[number];
type FactColumns = Record<Fact, Column>;

export function factsOf({ architecture, generation, cpuKind, localDisk, network }: Record<Fact, PgColumn>) {
  return { architecture, generation, cpuKind, localDisk, network };
}

/** Returns `Partial<MachineFacts>` as jsonb; null if none is known. */
export function factsJson(of: FactColumns): SQL {
  const pairs = FACT_FIELDS.map((field) => sql`${sql.raw(`'${field}'`)}, ${of[field]}`);
  return sql`case when num_nonnulls(${listOf(of)}) > 0
    then jsonb_strip_nulls(jsonb_build_object(${sql.join(pairs, sql`, `)})) end`;
}

export function factsDiffer(one: FactColumns, other: FactColumns): SQL {
  return sql`((${listOf(one)}) is distinct from (${listOf(other)}))`;
}

function listOf(of: FactColumns): SQL {
  return sql.join(
    FACT_FIELDS.map((field) => sql`${of[field]}`),
    sql`, `,
  );
}
