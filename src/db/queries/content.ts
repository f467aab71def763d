import type { Sql } from '../connect.ts';

export type Content = 'sample' | 'live';

/**
 * Claims the database for the sample or for live data; the first use decides for good.
 * @throws Error that says what to do when it holds the other kind.
 */
export async function claimContent(sql: Sql, content: Content): Promise<void> {
  await sql`update lineage set content = ${content} where content is null`;
  const [row] = await sql<{ content: Content }[]>`select content from lineage`;
  if (row?.content === content) return;
  throw new Error(
    `this database holds ${row?.content === 'sample' ? 'the sample catalogue' : 'live data'} and ${
      content === 'sample' ? 'the sample' : 'live data'
    } must not mix with it; give another database in DATABASE_URL`,
  );
}
