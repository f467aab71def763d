import type { Database } from '../connect.ts';
import { isNull } from '../drizzle.ts';
import { lineage } from '../schema.ts';

export type Content = 'sample' | 'live';

/**
 * Claims the database for the sample or for live data; the first use decides for good.
 * @throws Error that says what to do when it holds the other kind.
 */
export async function claimContent(db: Database, content: Content): Promise<void> {
  await db.update(lineage).set({ content }).where(isNull(lineage.content));
  const [row] = await db.select({ content: lineage.content }).from(lineage);
  if (row?.content === content) return;
  throw new Error(
    `this database holds ${row?.content === 'sample' ? 'the sample catalogue' : 'live data'} and ${
      content === 'sample' ? 'the sample' : 'live data'
    } must not mix with it; give another database in DATABASE_URL`,
  );
}
