import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { and, eq, ne, sql } from '../../db/connection/drizzle.ts';
import { array, increment, insertInto, nameOf } from '../../db/connection/statements.ts';
import { clusters, disks, diskTypes, organizations } from '../../db/schema.ts';
import { RAISE } from '../../db/versions.ts';
import type { ChangedBy } from '../runs/run.ts';
import { recordChanges, saveStates } from './log.ts';
import { clusterDiff as d, clusterMissing as missing } from './match.ts';

const STATED = {
  sourceHash: d.sourceHash,
  slug: d.slug,
  name: sql`${d.item} ->> 'name'`,
  regionId: d.regionId,
  machineId: d.machineId,
  userId: d.userId,
  status: sql`${d.item} ->> 'status'`,
  shards: sql`(${d.item} ->> 'shards')::integer`,
  replicas: sql`(${d.item} ->> 'replicas')::integer`,
  createdAt: sql`(${d.item} ->> 'createdAt')::timestamp`,
} as const;

const DISKS = sql`${d} cross join lateral (
  select ordinality - 1 as position, disk #>> '{type,name}' as name, disk #>> '{type,unit}' as unit,
    (disk #>> '{type,pricePerMinute}')::numeric as price,
    (disk #>> '{type,price,amount}')::numeric as amount, disk #>> '{type,price,per}' as per,
    disk #>> '{type,price,currency}' as currency,
    (disk ->> 'size')::double precision as size, disk ->> 'unit' as size_unit,
    (disk ->> 'autoscaling')::boolean as autoscaling
  from jsonb_array_elements(${d.item} -> 'disks') with ordinality e (disk, ordinality)) k`;

const IS_TYPE_OF_DISK = sql`${diskTypes.organizationId} = ${d.organizationId} and ${diskTypes.regionId} = ${d.regionId}
  and ${diskTypes.name} = k.name and ${diskTypes.unit} = k.unit and ${diskTypes.sourceAmount} = k.amount
  and ${diskTypes.sourcePer} = k.per and ${diskTypes.sourceCurrency} = k.currency`;

/** Writes the clusters with their disks. Call `setSlugs` before. Returns the number of retired clusters. */
export async function writeClusters(
  db: ConnectionDatabase,
  by: ChangedBy,
  runsUntilRetired: number,
): Promise<number> {
  const { runId, sourceId, now } = by;
  await saveStates(db);
  // First, since it frees slugs.
  const retired = await retireMissing(db, now, runsUntilRetired);
  await writeDiskTypes(db);
  // A slug may move from one cluster to another in the same batch: free all of them before.
  await db
    .update(clusters)
    .set({ retiredAt: sql`coalesce(${clusters.retiredAt}, ${now}::timestamptz)` })
    .from(d)
    .where(and(eq(clusters.id, d.clusterId), ne(d.slug, d.oldSlug)));
  await db
    .update(clusters)
    .set({ ...STATED, missedRuns: 0, retiredAt: null })
    .from(d)
    .where(eq(clusters.id, d.clusterId));
  await db.execute(sql`
    ${insertInto(clusters, { ...STATED, organizationId: d.organizationId, sourceId, sourceKey: d.sourceKey, addedBy: runId })}
    from ${d} where ${d.isNew} order by ${d.organizationId}, ${d.sourceKey} collate "C"`);
  await db.execute(sql`
    update ${d} set ${nameOf(d.clusterId)} = ${clusters.id} from ${clusters}
    where ${d.isNew} and ${clusters.sourceId} = ${sourceId} and ${clusters.organizationId} = ${d.organizationId}
      and ${clusters.sourceKey} = ${d.sourceKey}`);
  await writeDisks(db);
  await recordChanges(db, by);
  const changed = sql`
    select ${d.organizationId} from ${d} union select unnest(${array(retired, 'integer')})`;
  await db.execute(sql`${RAISE.clusters} where ${organizations.id} in (${changed})`);
  return retired.length;
}

/** Counts missed runs and retires clusters that missed too many. Returns the organization of each retired cluster. */
async function retireMissing(
  db: ConnectionDatabase,
  now: string,
  runsUntilRetired: number,
): Promise<number[]> {
  await db.execute(sql`
    update ${clusters} set ${nameOf(clusters.missedRuns)} =
      case when ${missing.tolerated} then 0 else ${increment(clusters.missedRuns)} end
    from ${missing}
    where ${clusters.id} = ${missing.clusterId} and (not ${missing.tolerated} or ${clusters.missedRuns} > 0)`);
  const isLate = sql`not ${missing.tolerated} and ${clusters.missedRuns} >= ${runsUntilRetired}`;
  const retired = await db
    .update(clusters)
    .set({ retiredAt: now })
    .from(missing)
    .where(and(eq(clusters.id, missing.clusterId), isLate))
    .returning({ organizationId: clusters.organizationId });
  return retired.map(({ organizationId }) => organizationId);
}

async function writeDiskTypes(db: ConnectionDatabase): Promise<void> {
  await db.execute(sql`
    ${insertInto(diskTypes, {
      organizationId: d.organizationId,
      regionId: d.regionId,
      name: sql`k.name`,
      unit: sql`k.unit`,
      sourceAmount: sql`k.amount`,
      sourcePer: sql`k.per`,
      sourceCurrency: sql`k.currency`,
      price: sql`min(k.price)`,
    })}
    from ${DISKS}
    where not exists (select from ${diskTypes} where ${IS_TYPE_OF_DISK})
    group by 1, 2, 3, 4, 5, 6, 7
    on conflict do nothing`);
  // An exchange rate changes the price of the same disk type.
  await db.execute(sql`
    update ${diskTypes} set ${nameOf(diskTypes.price)} = k.price
    from ${DISKS} where ${IS_TYPE_OF_DISK} and ${diskTypes.price} <> k.price`);
}

async function writeDisks(db: ConnectionDatabase): Promise<void> {
  await db.execute(sql`
    delete from ${disks} using ${d}
    where ${disks.organizationId} = ${d.organizationId} and ${disks.clusterId} = ${d.clusterId}`);
  await db.execute(sql`
    ${insertInto(disks, {
      organizationId: d.organizationId,
      clusterId: d.clusterId,
      position: sql`k.position`,
      diskTypeId: diskTypes.id,
      size: sql`k.size`,
      unit: sql`k.size_unit`,
      autoscaling: sql`k.autoscaling`,
    })}
    from ${DISKS} join ${diskTypes} on ${IS_TYPE_OF_DISK}`);
}

export interface SlugRow {
  readonly organizationId: number;
  readonly sourceKey: string;
  readonly name: string;
  readonly given: string | null;
  readonly old: string | null;
}

const ORGANIZATIONS_PER_READ = 2000;

/** Yields the clusters that need a slug, in the fixed order of slugs, some organizations at a time. */
export async function* slugBatches(db: ConnectionDatabase, runsUntilRetired: number) {
  const ids = await db.selectDistinct({ id: d.organizationId }).from(d).orderBy(d.organizationId);
  for (let from = 0; from < ids.length; from += ORGANIZATIONS_PER_READ) {
    const organizationIds = array(
      ids.slice(from, from + ORGANIZATIONS_PER_READ).map(({ id }) => id),
      'integer',
    );
    const rows: SlugRow[] = await db
      .select({
        organizationId: d.organizationId,
        sourceKey: d.sourceKey,
        name: sql<string>`${d.item} ->> 'name'`,
        given: sql<string | null>`${d.item} ->> 'slug'`,
        old: sql<string | null>`case when ${d.wasRetired} then null else ${d.oldSlug} end`,
      })
      .from(d)
      .where(sql`${d.organizationId} = any(${organizationIds})`)
      .orderBy(d.organizationId, sql`${d.item} ->> 'createdAt' collate "C"`, sql`${d.sourceKey} collate "C"`);
    // Slugs of the organizations' other clusters, which the batch neither changes nor retires.
    const taken = await db
      .select({ organizationId: clusters.organizationId, slug: clusters.slug })
      .from(clusters)
      .where(sql`
        ${clusters.retiredAt} is null and ${clusters.organizationId} = any(${organizationIds})
        and not exists (select from ${d} where ${d.clusterId} = ${clusters.id})
        and not exists (
          select from ${missing}
          where ${missing.clusterId} = ${clusters.id} and not ${missing.tolerated}
            and ${clusters.missedRuns} + 1 >= ${runsUntilRetired})`);
    yield { rows, taken };
  }
}

export async function setSlugs(
  db: ConnectionDatabase,
  slugs: readonly { organizationId: number; sourceKey: string; slug: string }[],
): Promise<void> {
  const column = <Key extends keyof (typeof slugs)[number]>(key: Key) => slugs.map((row) => row[key]);
  await db.execute(sql`
    update ${d} set ${nameOf(d.slug)} = w.slug
    from unnest(${array(column('organizationId'), 'integer')}, ${array(column('sourceKey'), 'text')},
                ${array(column('slug'), 'text')}) w (organization_id, source_key, slug)
    where ${d.organizationId} = w.organization_id and ${d.sourceKey} = w.source_key`);
}
