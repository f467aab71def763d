/** Staged rows that no catalogue can hold, twice, in such a place or at such a price: taken out, with the reason. */
import { REJECTED_KEPT, type RejectedKey, type RejectionCode } from '../../../domain/rejected-rows.ts';
import type { SessionDatabase } from '../../connection/connect.ts';
import { type SQL, sql } from '../../connection/drizzle.ts';
import { array } from '../../connection/statements.ts';
import { regions } from '../../schema.ts';
import { stagedOffers } from '../staged.ts';

/** What no row may go beyond. */
export interface Bounds {
  /** Codes of the batch's own regions. */
  readonly regions: readonly string[];
  /** Per minute, in the published currency. */
  readonly maxPrice: string;
}

export interface Unusable {
  /** At most a few more than `REJECTED_KEPT` of each kind. */
  readonly rejected: readonly RejectedKey[];
  readonly repeated: readonly Repeated[];
}

/** A machine that was there more than once. */
export interface Repeated {
  readonly name: string;
  /** How many rows it had. */
  readonly rows: number;
  readonly rejected: RejectedKey;
}

const o = stagedOffers;

/** Takes every such row out of the staging table. */
export async function rejectUnusable(
  db: SessionDatabase,
  providerId: number,
  { regions: own, maxPrice }: Bounds,
): Promise<Unusable> {
  // What is there twice goes first: of two prices the one out of range is not known to be the wrong one.
  const repeated = await takeOut(
    db,
    sql`(${o.regionCode}, ${o.name}) in (
      select ${o.regionCode}, ${o.name} from ${o} group by 1, 2 having count(*) > 1)`,
  );
  const unknownRegion = await takeOut(
    db,
    sql`not ${o.regionCode} = any(${array(own, 'text')}) and not exists (
      select from ${regions} where ${regions.providerId} = ${providerId} and ${regions.code} = ${o.regionCode}
        and ${regions.organizationId} is null)`,
  );
  const outOfRange = await takeOut(db, sql`${o.price} > ${maxPrice}`);
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

type Taken = {
  readonly regionCode: string;
  readonly name: string;
  /** How many rows of the machine there were; what follows is one row's. */
  readonly rows: number;
  readonly amount: string;
  readonly per: string;
  readonly currency: string;
};

/** Takes the rows that meet a condition out. @returns their machines, at most one more than `REJECTED_KEPT` */
async function takeOut(db: SessionDatabase, condition: SQL): Promise<Taken[]> {
  return await db.execute<Taken>(sql`
    with gone as ${db.delete(o).where(condition).returning()}
    select region_code as "regionCode", name, count(*)::int as rows,
      min(source_amount) as amount, min(source_per) as per, min(source_currency) as currency
    from gone group by region_code, name
    order by region_code collate "C", name collate "C" limit ${REJECTED_KEPT + 1}`);
}

function rejectedMachine({ regionCode, name }: Taken, code: RejectionCode, reason: string): RejectedKey {
  return { key: `${name}@${regionCode}`, regionCode, name, reason, code };
}
