/** Removes unusable offers from the staging table: duplicates, unknown regions and prices out of range. */
import { REJECTED_KEPT, type RejectedKey, type RejectionCode } from '../../../domain/rejected-rows.ts';
import type { ConnectionDatabase } from '../../connection/connect.ts';
import { type SQL, sql } from '../../connection/drizzle.ts';
import { array } from '../../connection/statements.ts';
import { regions } from '../../schema.ts';
import { stagedOffers } from '../staged.ts';

export interface Bounds {
  readonly regions: readonly string[];
  readonly maxPrice: string;
}

export interface Unusable {
  /** Limited to about `REJECTED_KEPT` of each kind. */
  readonly rejected: readonly RejectedKey[];
  readonly repeated: readonly Repeated[];
}

export interface Repeated {
  readonly name: string;
  readonly rows: number;
  readonly rejected: RejectedKey;
}

const o = stagedOffers;

export async function rejectUnusable(
  db: ConnectionDatabase,
  providerId: number,
  { regions: own, maxPrice }: Bounds,
): Promise<Unusable> {
  // Duplicates first: of two prices, the one out of range need not be the wrong one.
  const repeated = await remove(
    db,
    sql`(${o.regionCode}, ${o.name}) in (
      select ${o.regionCode}, ${o.name} from ${o} group by 1, 2 having count(*) > 1)`,
  );
  const unknownRegion = await remove(
    db,
    sql`not ${o.regionCode} = any(${array(own, 'text')}) and not exists (
      select from ${regions} where ${regions.providerId} = ${providerId} and ${regions.code} = ${o.regionCode}
        and ${regions.organizationId} is null)`,
  );
  const outOfRange = await remove(db, sql`${o.price} > ${maxPrice}`);
  const duplicates = repeated.map((row): Repeated => {
    const reason = `reported ${row.rows} times in one batch; which one holds cannot be told`;
    return { name: row.name, rows: row.rows, rejected: rejectedMachine(row, 'duplicate', reason) };
  });
  const rejected = [
    ...duplicates.map((each) => each.rejected),
    ...unknownRegion.map((row) =>
      rejectedMachine(
        row,
        'unknown_region',
        `its region ${row.regionCode} is none of the provider's regions`,
      ),
    ),
    ...outOfRange.map((row) =>
      rejectedMachine(
        row,
        'price_limit',
        `price ${row.amount} ${row.currency} per ${row.per} is beyond every machine's; a unit may have changed`,
      ),
    ),
  ];
  return { rejected, repeated: duplicates };
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
async function remove(db: ConnectionDatabase, condition: SQL): Promise<Removed[]> {
  return await db.execute<Removed>(sql`
    with gone as ${db.delete(o).where(condition).returning()}
    select region_code as "regionCode", name, count(*)::int as rows,
      min(source_amount) as amount, min(source_per) as per, min(source_currency) as currency
    from gone group by region_code, name
    order by region_code collate "C", name collate "C" limit ${REJECTED_KEPT + 1}`);
}

function rejectedMachine({ regionCode, name }: Removed, code: RejectionCode, reason: string): RejectedKey {
  return { key: `${name}@${regionCode}`, regionCode, name, reason, code };
}
