import type { Sql } from '../connect.ts';

export interface KnownProvider {
  readonly id: number;
  readonly name: string;
}

/**
 * Makes the providers that adapters name have the ids that they name, whatever comes first: their catalogue, or a
 * cluster that runs there. One that a cluster had brought under an id of its own, before this release knew it, moves
 * to the known id, and the organizations that show it get a new version.
 */
export async function seedProviders(sql: Sql, known: readonly KnownProvider[]): Promise<void> {
  const ids = known.map(({ id }) => id);
  const names = known.map(({ name }) => name);
  await sql.begin(async (tx) => {
    const wanted = tx`unnest(${ids}::int[], ${names}::text[]) w (id, name)`;
    const strangers = await tx<{ id: number; wanted: number }[]>`
      select p.id, w.id as wanted from providers p join ${wanted} on lower(p.name) = lower(w.name) and p.id <> w.id
      for update of p`;
    for (const stranger of strangers) {
      // The name is unique: it is freed before the known row takes it.
      await tx`update providers set name = 'moved ' || id where id = ${stranger.id}`;
    }
    await tx`
      insert into providers (id, name)
      select w.id, w.name from ${wanted} where not exists (select from providers p where p.id = w.id)
      order by w.id on conflict do nothing`;
    for (const stranger of strangers) {
      await tx`
        update organizations set clusters_version = clusters_version + 1
        where id in (select c.organization_id from clusters c join regions r on r.id = c.region_id
                     where r.provider_id = ${stranger.id} and c.retired_at is null)`;
      // A region of an organization that is there under both ids stays behind: its clusters move with their next sync.
      await tx`
        update regions r set provider_id = ${stranger.wanted}
        where provider_id = ${stranger.id} and not exists (
          select from regions o where o.provider_id = ${stranger.wanted} and o.code = r.code
            and o.organization_id is not distinct from r.organization_id)`;
      await tx`
        delete from providers p
        where id = ${stranger.id} and not exists (select from regions r where r.provider_id = p.id)`;
    }
  });
}

/**
 * The provider that a source's configuration names, made when there is none yet. Upper and lower case do not tell two
 * providers apart; the spelling that was there first stays.
 */
export async function providerNamed(sql: Sql, name: string): Promise<KnownProvider> {
  const find = () => sql<KnownProvider[]>`
    select id, name from providers where lower(name) = lower(${name}) order by id limit 1`;
  const [found] = await find();
  if (found) return found;
  // Only a name that is not there takes an id. Of two workers that make it at once, one finds the other's.
  await sql`insert into providers (name) values (${name}) on conflict do nothing`;
  const [made] = await find();
  if (!made) throw new Error(`unreachable: the provider ${name} was made and is not there`);
  return made;
}
