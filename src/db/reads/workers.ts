import type { Sql } from '../client.ts';

/** The job of the house that the clock of every worker makes due each minute. */
export const EVERY_MINUTE = 'publish-sweep';

/** When any worker has claimed a slot that is due every minute, RFC 3339; undefined where none ever ran. */
export async function lastWorkerSign(sql: Sql): Promise<string | undefined> {
  const [row] = await sql<{ at: string | null }[]>`
    select to_char(max(claimed_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as at
    from schedule_slots where schedule = ${EVERY_MINUTE}`;
  return row?.at ?? undefined;
}
