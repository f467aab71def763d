/** Which versions of its documents a source's stored rows come from. */
import type { SessionSql, Sql } from '../connect.ts';

/** See `DocumentVersion` in sources/source.ts. */
interface StoredVersion {
  readonly url: string;
  readonly etag?: string;
  readonly lastModified?: string;
}

/**
 * The versions to ask by, by their address; none where rows would have to be made anew from the same documents:
 * clusters whose machine or region no catalogue knew, and those whose machine has another size by now.
 *
 * @param reading what documents are read by, see `readingOf` in run-source.ts: versions that were stored under another
 *   one are not given
 */
export async function storedVersions(
  sql: Sql,
  sourceId: string,
  reading: string,
): Promise<ReadonlyMap<string, StoredVersion>> {
  const rows = await sql<{ url: string; etag: string | null; lastModified: string | null }[]>`
    select url, etag, last_modified as "lastModified" from source_validators
    where source_id = ${sourceId} and reading = ${reading}
      and not exists (
        select from clusters c
        join machines m on m.id = c.machine_id
        join regions r on r.id = c.region_id
        where c.source_id = ${sourceId} and c.retired_at is null
          and (m.excluded_reason = 'unlisted' or r.organization_id is not null or c.source_hash = ''))`;
  return new Map(
    rows.map(({ url, etag, lastModified }) => [
      url,
      { url, ...(etag === null ? {} : { etag }), ...(lastModified === null ? {} : { lastModified }) },
    ]),
  );
}

/**
 * Makes these all the versions that are kept of the source. One that is not in use any more must go: the document may
 * come back, and the stored rows are another one's by then.
 */
export async function writeVersions(
  sql: SessionSql,
  sourceId: string,
  reading: string,
  versions: readonly StoredVersion[],
): Promise<void> {
  const byUrl = new Map(versions.map((version) => [version.url, version]));
  const urls = [...byUrl.keys()];
  const etags = [...byUrl.values()].map(({ etag }) => etag ?? null);
  const modified = [...byUrl.values()].map(({ lastModified }) => lastModified ?? null);
  await sql`delete from source_validators where source_id = ${sourceId} and not url = any(${urls}::text[])`;
  if (urls.length === 0) return;
  await sql`
    insert into source_validators as v (source_id, url, etag, last_modified, reading)
    select ${sourceId}, url, etag, last_modified, ${reading}
    from unnest(${urls}::text[], ${etags}::text[], ${modified}::text[]) w (url, etag, last_modified)
    on conflict (source_id, url) do update
    set etag = excluded.etag, last_modified = excluded.last_modified, reading = excluded.reading
    where (v.etag, v.last_modified, v.reading)
      is distinct from (excluded.etag, excluded.last_modified, excluded.reading)`;
}

/** Codes of regions in which something was missed and is not retired yet: it has to be missed again. */
export async function regionsWithMissed(sql: SessionSql, sourceId: string): Promise<string[]> {
  const rows = await sql<{ code: string }[]>`
    select distinct r.code from regions r where r.id in (
      select region_id from machines
      where source_id = ${sourceId} and retired_at is null and missed_runs > 0
      union all
      select region_id from clusters
      where source_id = ${sourceId} and retired_at is null and missed_runs > 0)`;
  return rows.map(({ code }) => code);
}

/** How many rows of a source readers or operators can see. */
export async function countStored(sql: SessionSql, sourceId: string): Promise<number> {
  const [row] = await sql<{ stored: number }[]>`
    select ((select count(*) from machines where source_id = ${sourceId} and retired_at is null)
      + (select count(*) from clusters where source_id = ${sourceId} and retired_at is null))::int as stored`;
  return row?.stored ?? 0;
}

/** Names of these regions of a provider as they are stored. */
export async function storedRegions(
  sql: SessionSql,
  providerId: number,
  codes: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (codes.length === 0) return new Map();
  const rows = await sql<{ code: string; name: string }[]>`
    select code, name from regions
    where provider_id = ${providerId} and organization_id is null and code = any(${[...codes]}::text[])`;
  return new Map(rows.map(({ code, name }) => [code, name]));
}

/**
 * Puts a source's stored machines of these regions beside the staged offers, as they are, so that all that follows
 * takes them for reported.
 * @returns how many there are
 */
export async function stageStored(
  sql: SessionSql,
  sourceId: string,
  regionCodes: readonly string[],
): Promise<number> {
  if (regionCodes.length === 0) return 0;
  const staged = await sql`
    insert into staged_offers
      (region_code, name, cpu, ram, ram_unit, source_amount, source_per, source_currency, price, excluded_reason)
    select r.code, m.name, m.cpu, m.ram, m.ram_unit, m.source_amount, m.source_per, m.source_currency, m.price,
      nullif(m.excluded_reason, 'no_exchange_rate')
    from machines m join regions r on r.id = m.region_id
    where m.source_id = ${sourceId} and m.retired_at is null and m.source_amount is not null
      and r.code = any(${[...regionCodes]}::text[])`;
  return staged.count;
}
