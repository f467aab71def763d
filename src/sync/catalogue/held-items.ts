/** A catalogue as the items of a held batch, in the shape that its adapter has read them. */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { alias, type Column, type SQL, type SQLWrapper, sql } from '../../db/connection/drizzle.ts';
import { array, inCatalogue } from '../../db/connection/statements.ts';
import type { BatchDecision } from '../../db/held-batches.ts';
import { factsJson } from '../../db/machine-facts.ts';
import { offeredTerms } from '../../db/prices/terms.ts';
import { databasePlans, machines, regions } from '../../db/schema.ts';
import type { ValidatorItem } from '../../sources/source.ts';
import { type HeldParts, holdBatch, type StatedColumns, statedPrice } from '../runs/hold.ts';
import type { Run } from '../runs/run.ts';
import { saveItems } from '../runs/undo.ts';
import { unmodifiedRegions } from '../validators.ts';
import { stagedOffers } from './stage.ts';

const d = alias(databasePlans, 'd');
const m = alias(machines, 'm');
const r = alias(regions, 'r');

/**
 * Stores the staged offers as a held batch. An unmodified region has none in it: its rows, prices and plans are those that are stored.
 * @param asOf times of regions; the whole source's time is in `readAt`
 */
export async function holdCatalogue(
  db: ConnectionDatabase,
  run: Run,
  {
    regions,
    others: items,
    unmodified,
    asOf,
    ...parts
  }: HeldParts & {
    readonly regions: ReadonlyMap<string, string>;
    /** Items of the kinds `region-price`, `database-plan` and `unread-prices`. */
    readonly others: readonly object[];
    readonly unmodified: readonly ValidatorItem[];
    readonly asOf: ReadonlyMap<string | undefined, string>;
  },
): Promise<void> {
  const named = [...regions].map(([code, name]) => ({ kind: 'region', code, name }));
  const others = [...named, ...items, ...unmodified];
  const times = [...asOf].flatMap(([regionCode, time]) =>
    regionCode === undefined ? [] : [{ kind: 'as-of', regionCode, time }],
  );
  const o = stagedOffers;
  const order = sql`${o.regionCode} collate "C", ${o.name} collate "C"`;
  const staged = sql`select ${offerItem(o, o.regionCode, o.excludedReason)}, row_number() over (order by ${order}) from ${o}
    where not ${o.regionCode} = any(${array(unmodifiedRegions(unmodified), 'text')})`;
  await holdBatch(db, run, { ...parts, others, staged, times });
}

/** Saves the source's stored catalogue, so that an operator can undo the approval of a batch. */
export async function saveCatalogue(
  db: ConnectionDatabase,
  { batchId }: BatchDecision,
  source: { readonly id: string; readonly provider: { readonly id: number } },
): Promise<void> {
  await saveItems(
    db,
    batchId,
    source.id,
    sql`
      select jsonb_build_object('kind', 'region', 'code', ${r.code}, 'name', ${r.name})
      from ${regions} r where ${inCatalogue(r, source.provider.id)}
      union all
      select jsonb_build_object('kind', 'region-price', 'regionCode', ${r.code},
        'price', (price - 'tiers' - 'source') || (price -> 'source'))
      from ${regions} r cross join lateral jsonb_array_elements(${r.prices}) price
      where ${inCatalogue(r, source.provider.id)}
      union all
      select jsonb_build_object('kind', 'database-plan', 'regionCode', ${r.code}, 'plan', jsonb_build_object(
        'engine', ${d.engine}, 'name', ${d.name}, 'nodes', ${d.nodes}, 'cpu', ${d.cpu}, 'ram', ${d.ram},
        'ramUnit', ${d.ramUnit}, 'storage', ${d.storage}, 'price', ${statedPrice(d)}))
      from ${databasePlans} d join ${regions} r on ${r.id} = ${d.regionId}
      where ${d.sourceId} = ${source.id} and ${d.retiredAt} is null
      union all
      select ${offerItem(m, r.code, sql`nullif(${m.excludedReason}, 'no_exchange_rate')`)}
      from ${machines} m join ${regions} r on ${r.id} = ${m.regionId}
      where ${m.sourceId} = ${source.id} and ${m.retiredAt} is null and ${m.sourceAmount} is not null`,
  );
}

/** Returns a machine as an adapter's item. @param excluded null unless the source itself excludes the machine */
function offerItem(
  machine: Record<'name' | 'cpu' | 'ram' | 'ramUnit' | 'terms', Column> &
    StatedColumns &
    Parameters<typeof factsJson>[0],
  regionCode: Column,
  excluded: SQLWrapper,
): SQL {
  const { name, cpu, ram, ramUnit } = machine;
  const { terms, monthlyCap } = offeredTerms(machine.terms);
  return sql`jsonb_build_object('kind', 'offer', 'offer', jsonb_strip_nulls(jsonb_build_object(
    'regionCode', ${regionCode}, 'name', ${name}, 'cpu', ${cpu}, 'ram', ${ram}, 'ramUnit', ${ramUnit},
    'price', ${statedPrice(machine)}, 'facts', ${factsJson(machine)}, 'excluded', ${excluded},
    'terms', ${terms}, 'monthlyCap', ${monthlyCap})))`;
}
