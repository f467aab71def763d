import type { Sql } from '../client.ts';

/** The names of the providers, by id: those that a catalogue lists, and those that only clusters name. */
export async function providerNames(sql: Sql): Promise<ReadonlyMap<number, string>> {
  const rows = await sql<{ id: number; name: string }[]>`select id, name from providers order by id`;
  return new Map(rows.map(({ id, name }) => [id, name]));
}
