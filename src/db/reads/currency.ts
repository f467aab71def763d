import { isRateNeeded, type PricedSource } from '../../domain/needed-rates.ts';
import type { Sql } from '../client.ts';
import type { SourceStatus } from './status.ts';

/** The currency of every published price; undefined while it is not known, see queries/currency.ts. */
export async function storedCurrency(sql: Sql): Promise<string | undefined> {
  const [row] = await sql<{ currency: string | null }[]>`select currency from lineage`;
  return row?.currency ?? undefined;
}

/** Whether a source of exchange rates did not end its last run well. */
const isRatesInTrouble = ({ kind, verifiedAt, lastEnded }: SourceStatus): boolean =>
  kind === 'rates' && (verifiedAt === null || ['failed', 'interrupted'].includes(lastEnded?.outcome ?? ''));

/**
 * Returns false if no price needs the exchange rates of a source that fails: an operator then has nothing to do.
 * @param statuses of every stored source
 */
export async function areRatesNeeded(
  sql: Sql,
  configured: readonly PricedSource[],
  statuses: readonly SourceStatus[],
): Promise<boolean> {
  if (!statuses.some(isRatesInTrouble)) return true;
  const [published, stated] = await Promise.all([storedCurrency(sql), statedCurrencies(sql)]);
  const wellRead = new Set(statuses.filter(({ verifiedAt }) => verifiedAt !== null).map(({ id }) => id));
  return isRateNeeded(configured, { published, stated, wellRead });
}

/** Returns the currencies of all stated prices. Reads every machine. */
async function statedCurrencies(sql: Sql): Promise<string[]> {
  const rows = await sql<{ currency: string }[]>`
    select distinct source_currency as currency from machines where retired_at is null and source_currency is not null
    union select source_currency from disk_types`;
  return rows.map(({ currency }) => currency);
}
