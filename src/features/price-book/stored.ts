/** Reads price books with the names that people use. */
import type { Sql } from '../../db/connection/client.ts';
import { instant } from '../../db/connection/instant-text.ts';
import type { Organization } from '../../db/organizations.ts';
import type { GivenEntry, PriceBookAnswer, PriceBookFile, ShownEntry } from './answers.ts';
import { ENTRY_FIELDS } from './bad-entry.ts';

/** Returns a book, the newest entry first. @param endedToo includes ended entries */
export async function readPriceBook(
  sql: Sql,
  { id, slug }: Organization,
  endedToo: boolean,
): Promise<PriceBookAnswer> {
  const [entries, [lineage]] = await Promise.all([
    shownEntries(
      sql,
      sql`e.organization_id = ${id} and (${endedToo} or e.valid_to is null or e.valid_to > clock_timestamp())`,
    ),
    sql<{ currency: string | null }[]>`select currency from lineage`,
  ]);
  return { organization: slug, currency: lineage?.currency ?? null, entries };
}

export async function readShownEntry(sql: Sql, id: number): Promise<ShownEntry | undefined> {
  return (await shownEntries(sql, sql`e.id = ${id}`))[0];
}

async function shownEntries(sql: Sql, condition: ReturnType<Sql>): Promise<ShownEntry[]> {
  const rows = await sql<{ entry: ShownEntry }[]>`
    select json_strip_nulls(json_build_object(
      'id', e.id,
      'provider', coalesce(p.name, rp.name, mp.name),
      'region', r.code,
      'family', e.family,
      'machine', m.name || '@' || mr.code,
      'term', e.term,
      'discount', trim_scale(e.discount)::text,
      'price', trim_scale(e.price)::text,
      'from', ${instant(sql, 'e.valid_from', 'ms')},
      'to', ${instant(sql, 'e.valid_to', 'ms')},
      'state', case when e.valid_to <= clock_timestamp() then 'ended'
        when e.valid_from > clock_timestamp() then 'begins later' else 'applies' end)) as entry
    from price_book_entries e
    left join providers p on p.id = e.provider_id
    left join regions r on r.id = e.region_id
    left join providers rp on rp.id = r.provider_id
    left join machines m on m.id = e.machine_id
    left join regions mr on mr.id = m.region_id
    left join providers mp on mp.id = mr.provider_id
    where ${condition}
    order by e.id desc`;
  return rows.map(({ entry }) => entry);
}

/** Returns the file of a book, the oldest entry first. An import of it changes nothing. */
export function fileOf({ organization, currency, entries }: PriceBookAnswer): PriceBookFile {
  const given = entries.toReversed().map((entry) => {
    const fields = ENTRY_FIELDS.flatMap((field) =>
      entry[field] === undefined ? [] : [[field, entry[field]]],
    );
    return Object.fromEntries(fields) as GivenEntry;
  });
  return { organization, ...(currency === null ? {} : { currency }), entries: given };
}
