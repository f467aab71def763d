/** Removes unusable offers from the staging table: duplicates, unknown regions and prices out of range. */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { type SQL, sql } from '../../db/connection/drizzle.ts';
import { array, inCatalogue } from '../../db/connection/statements.ts';
import { approvedRows } from '../../db/quarantine.ts';
import { regions } from '../../db/schema.ts';
import { REJECTED_KEPT, type RejectedKey, type RejectionCode } from '../../domain/rejected-rows.ts';
import { stagedOffers as o } from './stage.ts';

export interface Bounds {
  readonly regions: readonly string[];
  readonly maxPrice: string;
}

export interface Repeated {
  readonly name: string;
  readonly rows: number;
  readonly rejected: RejectedKey;
}

export async function rejectUnusable(
  db: ConnectionDatabase,
  providerId: number,
  { regions: own, maxPrice }: Bounds,
) {
  // Duplicates first: of two prices, the one out of range need not be the wrong one.
  const repeated = await reject(
    db,
    'duplicate',
    sql`(${o.regionCode}, ${o.name}) in (
      select ${o.regionCode}, ${o.name} from ${o} group by 1, 2 having count(*) > 1)`,
    ({ rows }) => `reported ${rows} times in one batch; Fleetbook cannot tell which row is right`,
  );
  const elsewhere = await reject(
    db,
    'unknown_region',
    sql`not ${o.regionCode} = any(${array(own, 'text')}) and not exists (
      select from ${regions} where ${inCatalogue(regions, providerId)} and ${regions.code} = ${o.regionCode})`,
    ({ regionCode }) => `its region ${regionCode} is not in the provider's list of regions`,
  );
  const outOfRange = await reject(
    db,
    'price_limit',
    sql`${o.price} > ${maxPrice}`,
    ({ amount, currency, per }) =>
      `price ${amount} ${currency} per ${per} is above the limit maxHourlyPrice; a unit may have changed`,
  );
  return { rejected: [...repeated, ...elsewhere, ...outOfRange].map((each) => each.rejected), repeated };
}

type Removed = {
  readonly regionCode: string;
  readonly name: string;
  /** Rows of the machine; the following columns are one row's. */
  readonly rows: number;
  readonly amount: string;
  readonly per: string;
  readonly currency: string;
};

/** Removes rows and returns their machines, at most one more than `REJECTED_KEPT`. */
async function reject(
  db: ConnectionDatabase,
  code: RejectionCode,
  condition: SQL,
  reasonOf: (row: Removed) => string,
): Promise<Repeated[]> {
  const removed = await db.execute<Removed>(sql`
    with gone as ${db.delete(o).where(condition).returning()}
    select region_code as "regionCode", name, count(*)::int as rows,
      min(source_amount) as amount, min(source_per) as per, min(source_currency) as currency
    from gone group by region_code, name
    order by region_code collate "C", name collate "C" limit ${REJECTED_KEPT + 1}`);
  return removed.map((row) => {
    const { regionCode, name, rows } = row;
    const rejected = { key: `${name}@${regionCode}`, regionCode, name, reason: reasonOf(row), code };
    return { name, rows, rejected };
  });
}

const rowsOf = (repeated: readonly Repeated[]) => repeated.reduce((sum, { rows }) => sum + rows, 0);

/** Counts the repeated rows without an approval, their types, and the approved rows. */
export async function duplicatesIn(
  db: ConnectionDatabase,
  sourceId: string,
  {
    rejected,
    repeated,
  }: {
    readonly rejected: readonly RejectedKey[];
    readonly repeated: readonly Repeated[];
  },
): Promise<{ rows: number; types: number; approved: number }> {
  const known = await approvedRows(db, sourceId, rejected);
  const unknown = repeated.filter((row) => !known.has(row.rejected));
  const rows = rowsOf(unknown);
  const approved = known.size + rowsOf(repeated) - rows - (repeated.length - unknown.length);
  return { rows, types: new Set(unknown.map(({ name }) => name)).size, approved };
}
