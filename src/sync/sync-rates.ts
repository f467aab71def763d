import type { Store } from '../db/connect.ts';
import { storedRates, writeRates } from '../db/queries/rates.ts';
import { finishRun, holdsFence, NO_COUNTS, type Run } from '../db/queries/runs.ts';
import type { RatesReading } from '../sources/source.ts';
import { keepVersions } from './documents.ts';
import { nothingStored, type SyncResult } from './result.ts';

export interface RatesSync {
  readonly store: Store;
  readonly run: Run;
  readonly rates: Promise<RatesReading>;
  /** See `CatalogueSync`. */
  readonly reading?: string;
  readonly now: () => Date;
}

/**
 * Stores the reference rates of a day. Prices follow with each source's next run, which compares the source's own
 * amounts and so sees no price change in a new rate.
 * @throws SourceError when they cannot be read
 */
export async function syncRates(sync: RatesSync): Promise<SyncResult> {
  const readAt = sync.now().toISOString();
  const rates = await sync.rates;
  const read = 'unmodified' in rates ? undefined : rates;
  const known = read ?? (await storedRates(sync.store.sql));
  const seen = Object.keys(known?.perEuro ?? {}).length;
  await using session = sync.store.session();
  const { sql } = session;
  await sql`begin`;
  const holds = await holdsFence(sql, sync.run);
  const { added, changed } = holds && read ? await writeRates(sql, read) : { added: 0, changed: 0 };
  if (holds && read) {
    const documents = read.version ? [{ kind: 'version', version: read.version } as const] : [];
    await keepVersions(sql, sync.run.sourceId, sync.reading, documents, []);
  }
  const counts = { ...NO_COUNTS, seen, added, changed };
  const outcome = !holds ? 'superseded' : added + changed > 0 ? 'changed' : 'unchanged';
  await finishRun(sql, sync.run, outcome, counts, readAt);
  await sql`commit`;
  return { ...nothingStored(outcome), counts };
}
