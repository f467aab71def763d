import type { Database } from './connection/connect.ts';
import { alias, eq, sql } from './connection/drizzle.ts';
import { array, insertInto } from './connection/statements.ts';
import { clusters, organizations, providers, regions } from './schema.ts';
import { RAISE } from './versions.ts';

export async function providerNames(db: Database): Promise<ReadonlyMap<number, string>> {
  const { id, name } = providers;
  const rows = await db.select({ id, name }).from(providers).orderBy(id);
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/** `keepsPricesSince`: price changes from this time on leave existing machines alone. Absent: they apply to all machines. */
export type KnownProvider = Readonly<Pick<typeof providers.$inferSelect, 'id' | 'name'>> & {
  readonly keepsPricesSince?: string;
};

/** Gives providers of adapters their fixed ids and their rules. A provider with another id moves, and its organizations get a new version. */
export async function seedProviders(db: Database, known: readonly KnownProvider[]): Promise<void> {
  const ids = known.map(({ id }) => id);
  const names = known.map(({ name }) => name);
  const wanted = sql`unnest(${array(ids, 'integer')}, ${array(names, 'text')}) w (id, name)`;
  await db.transaction(async (tx) => {
    const misplaced = await tx
      .select({ id: providers.id, wanted: sql<number>`w.id` })
      .from(providers)
      .innerJoin(wanted, sql`lower(${providers.name}) = lower(w.name) and ${providers.id} <> w.id`)
      .for('update', { of: providers });
    for (const { id } of misplaced) {
      // Names are unique: free this one for the row with the fixed id.
      await tx
        .update(providers)
        .set({ name: `moved ${id}` })
        .where(eq(providers.id, id));
    }
    await tx.execute(sql`
      ${insertInto(providers, { id: sql`w.id`, name: sql`w.name` })} from ${wanted}
      where not exists (select from ${providers} where ${providers.id} = w.id)
      order by w.id on conflict do nothing`);
    for (const provider of misplaced) await moveRegions(tx, provider);
    await storeRules(tx, known);
  });
}

/** Costs depend on the rules, so organizations with clusters at such a provider get a new version. */
async function storeRules(db: Database, known: readonly KnownProvider[]): Promise<void> {
  const ids = known.map(({ id }) => id);
  const since = known.map(({ keepsPricesSince }) => keepsPricesSince ?? null);
  const changed = await db
    .update(providers)
    .set({ keepsPricesSince: sql`w.since` })
    .from(sql`unnest(${array(ids, 'integer')}, ${array(since, 'timestamptz')}) w (id, since)`)
    .where(sql`${providers.id} = w.id and ${providers.keepsPricesSince} is distinct from w.since`)
    .returning({ id: providers.id });
  if (changed.length === 0) return;
  const changedIds = array(
    changed.map(({ id }) => id),
    'integer',
  );
  await db.execute(sql`${RAISE.clusters} where ${organizations.id} in (
      select ${clusters.organizationId} from ${clusters} join ${regions} on ${regions.id} = ${clusters.regionId}
      where ${regions.providerId} = any(${changedIds}) and ${clusters.retiredAt} is null)`);
}

async function moveRegions(db: Database, { id, wanted }: { id: number; wanted: number }): Promise<void> {
  await db.execute(sql`${RAISE.clusters} where ${organizations.id} in (
      select ${clusters.organizationId} from ${clusters} join ${regions} on ${regions.id} = ${clusters.regionId}
      where ${regions.providerId} = ${id} and ${clusters.retiredAt} is null)`);
  // A region that exists under both ids stays. Its clusters move with their next sync.
  const other = alias(regions, 'other');
  const same = sql`select from ${regions} other where ${other.providerId} = ${wanted} and ${other.code} = ${regions.code}
    and ${other.organizationId} is not distinct from ${regions.organizationId}`;
  await db
    .update(regions)
    .set({ providerId: wanted })
    .where(sql`${regions.providerId} = ${id} and not exists (${same})`);
  await db.delete(providers).where(sql`${providers.id} = ${id} and not exists (
      select from ${regions} where ${regions.providerId} = ${providers.id})`);
}

/** Finds or creates the provider that a source's configuration names, in upper or lower case. The first spelling stays. */
export async function providerNamed(db: Database, name: string): Promise<KnownProvider> {
  const find = () =>
    db
      .select({ id: providers.id, name: providers.name })
      .from(providers)
      .where(sql`lower(${providers.name}) = lower(${name})`)
      .orderBy(providers.id)
      .limit(1);
  const [found] = await find();
  if (found) return found;
  // A conflict would use up an id, so this inserts only new names. Of two concurrent workers, one finds the other's row.
  await db.insert(providers).values({ name }).onConflictDoNothing();
  const [made] = await find();
  if (!made) throw new Error(`unreachable: the provider ${name} is inserted above`);
  return made;
}
