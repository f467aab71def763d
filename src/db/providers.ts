import type { Sql } from './connection/client.ts';
import type { Database } from './connection/connect.ts';
import { alias, eq, sql } from './connection/drizzle.ts';
import { array, increment, insertInto } from './connection/statements.ts';
import { clusters, machineNames, machines, organizations, providers, regions } from './schema.ts';

/** The names of the providers, by id: those that a catalogue lists, and those that only clusters name. */
export async function providerNames(sql: Sql): Promise<ReadonlyMap<number, string>> {
  const rows = await sql<{ id: number; name: string }[]>`select id, name from providers order by id`;
  return new Map(rows.map(({ id, name }) => [id, name]));
}

export interface KnownProvider {
  readonly id: number;
  readonly name: string;
}

/**
 * Makes the providers that adapters name have the ids that they name, whatever comes first: their catalogue, or a
 * cluster that runs there. One that a cluster had brought under an id of its own, before this release knew it, moves
 * to the known id, and the organizations that show it get a new version.
 */
export async function seedProviders(db: Database, known: readonly KnownProvider[]): Promise<void> {
  const ids = known.map(({ id }) => id);
  const names = known.map(({ name }) => name);
  const wanted = sql`unnest(${array(ids, 'integer')}, ${array(names, 'text')}) w (id, name)`;
  await db.transaction(async (tx) => {
    const strangers = await tx
      .select({ id: providers.id, wanted: sql<number>`w.id` })
      .from(providers)
      .innerJoin(wanted, sql`lower(${providers.name}) = lower(w.name) and ${providers.id} <> w.id`)
      .for('update', { of: providers });
    for (const { id } of strangers) {
      // The name is unique: it is freed before the known row takes it.
      await tx
        .update(providers)
        .set({ name: `moved ${id}` })
        .where(eq(providers.id, id));
    }
    await tx.execute(sql`
      ${insertInto(providers, { id: sql`w.id`, name: sql`w.name` })} from ${wanted}
      where not exists (select from ${providers} where ${providers.id} = w.id)
      order by w.id on conflict do nothing`);
    for (const stranger of strangers) await moveRegions(tx, stranger);
  });
}

/** Gives the regions of one provider to another one, and the organizations that show them a new version. */
async function moveRegions(db: Database, { id, wanted }: { id: number; wanted: number }): Promise<void> {
  await db
    .update(organizations)
    .set({ clustersVersion: increment(organizations.clustersVersion) })
    .where(sql`${organizations.id} in (
      select ${clusters.organizationId} from ${clusters} join ${regions} on ${regions.id} = ${clusters.regionId}
      where ${regions.providerId} = ${id} and ${clusters.retiredAt} is null)`);
  // A region of an organization that is there under both ids stays behind: its clusters move with their next sync.
  const other = alias(regions, 'other');
  const same = sql`select from ${regions} other where ${other.providerId} = ${wanted} and ${other.code} = ${regions.code}
    and ${other.organizationId} is not distinct from ${regions.organizationId}`;
  await db
    .update(regions)
    .set({ providerId: wanted })
    .where(sql`${regions.providerId} = ${id} and not exists (${same})`);
  // The search of the release before reads these.
  await db.execute(sql`
    insert into ${machineNames} (provider_id, name)
    select distinct ${regions.providerId}, ${machines.name} from ${machines} join ${regions} on ${regions.id} = ${machines.regionId}
    where ${regions.providerId} = ${wanted}
    order by 1, 2 on conflict do nothing`);
  await db.delete(providers).where(sql`${providers.id} = ${id} and not exists (
      select from ${regions} where ${regions.providerId} = ${providers.id})`);
}

/**
 * The provider that a source's configuration names, made when there is none yet. Upper and lower case do not tell two
 * providers apart; the spelling that was there first stays.
 */
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
  // Only a name that is not there takes an id. Of two workers that make it at once, one finds the other's.
  await db.insert(providers).values({ name }).onConflictDoNothing();
  const [made] = await find();
  if (!made) throw new Error(`unreachable: the provider ${name} was made and is not there`);
  return made;
}
