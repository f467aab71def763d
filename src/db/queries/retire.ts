/** Takes what a source has brought out of publication, because nobody reads it any more. Its history stays. */
import type { SessionSql, Sql, Store } from '../connect.ts';
import { supersedeHeld } from './held.ts';
import { lockOrganizations } from './lock-organizations.ts';

/** What would go from one region or one organization. */
export interface RetiredPlace {
  /** Provider and region, or the organization's slug. */
  readonly place: string;
  /** Machines or clusters that are not retired. */
  readonly known: number;
  /** Of those, the ones that readers see. */
  readonly published: number;
}

/** A source as far as it is to be retired. */
export interface Retirement {
  readonly id: string;
  readonly kind: 'catalogue' | 'clusters' | 'rates';
  /** When its last good run began to read, RFC 3339. */
  readonly verifiedAt: string | null;
  /** When any run of it began last: whoever began it may still have it configured. */
  readonly lastRunAt: string | null;
  /** When it was retired before, RFC 3339. */
  readonly retiredAt: string | null;
  readonly places: readonly RetiredPlace[];
  /** Exchange rates that nobody else would renew. */
  readonly rates: number;
}

/** What there is to retire of a source; undefined for one that was never known. */
export async function previewRetirement(
  sql: Sql | SessionSql,
  sourceId: string,
): Promise<Retirement | undefined> {
  const [source] = await sql<(Omit<Retirement, 'places' | 'rates'> & { readonly rates: number })[]>`
    select s.id, s.kind,
      to_char(s.verified_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "verifiedAt",
      (select to_char(max(r.started_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        from sync_runs r where r.source_id = s.id) as "lastRunAt",
      to_char(s.retired_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "retiredAt",
      case when s.kind = 'rates' and ${isOnlyOfRates(sql, sourceId)}
        then (select count(*)::int from exchange_rates) else 0 end as rates
    from sources s where s.id = ${sourceId}`;
  if (!source) return undefined;
  const places = await sql<RetiredPlace[]>`
    select p.name || ' ' || r.code as place, count(*)::int as known,
      (count(*) filter (where m.excluded_reason is null))::int as published
    from machines m join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
    where m.source_id = ${sourceId} and m.retired_at is null
    group by p.name, r.code
    union all
    select o.slug, count(*)::int, count(*)::int
    from clusters c join organizations o on o.id = c.organization_id
    where c.source_id = ${sourceId} and c.retired_at is null
    group by o.slug`;
  return { ...source, places: places.toSorted((one, other) => (one.place < other.place ? -1 : 1)) };
}

/** Whether no other source of exchange rates has brought, or may have brought, those that are stored. */
function isOnlyOfRates(sql: Sql | SessionSql, sourceId: string) {
  return sql`not exists (
    select from sources o
    where o.kind = 'rates' and o.id <> ${sourceId} and o.verified_at is not null and o.retired_at is null)`;
}

/**
 * Retires everything of a source, in one transaction that a run which is under way cannot outlast: it stores nothing.
 * Machines and clusters keep their ids for the day when the source is configured again and read.
 * @param now RFC 3339
 * @returns what went; undefined for a source that was never known
 */
export async function retireSource(
  store: Store,
  sourceId: string,
  now: string,
): Promise<Retirement | undefined> {
  // Ending the session is the rollback.
  await using session = store.session();
  const { sql } = session;
  await sql`begin`;
  // The order in which a run locks: the source, the provider, the rows, the organizations, the lineage.
  const raised = await sql`
    update sources set fence = fence + 1, retired_at = ${now}::timestamptz where id = ${sourceId}`;
  if (raised.count === 0) return undefined;
  await sql`
    update sync_runs set outcome = 'superseded', finished_at = clock_timestamp()
    where source_id = ${sourceId} and outcome = 'running'`;
  await supersedeHeld(sql, sourceId);
  await sql`delete from quarantined_rows where source_id = ${sourceId}`;
  await sql`
    select from providers
    where id in (
      select r.provider_id from regions r join machines m on m.region_id = r.id where m.source_id = ${sourceId})
    order by id for no key update`;
  const gone = await previewRetirement(sql, sourceId);
  await forgetVersions(sql, sourceId);
  await retireMachines(sql, sourceId, now);
  await retireClusters(sql, sourceId, now);
  if (gone && gone.rates > 0) await sql`delete from exchange_rates`;
  await sql`commit`;
  return gone;
}

/**
 * Its documents have to be read again when the source comes back, and so have those of other sources of its providers:
 * of a machine that both listed the other one may have found nothing to store.
 */
async function forgetVersions(sql: SessionSql, sourceId: string): Promise<void> {
  await sql`
    delete from source_validators where source_id = ${sourceId} or source_id in (
      select f.source_id from region_freshness f
      where f.region_id in (select region_id from machines where source_id = ${sourceId}))`;
}

async function retireMachines(sql: SessionSql, sourceId: string, now: string): Promise<void> {
  await sql`
    with gone as (
      update machines set retired_at = ${now}::timestamptz where source_id = ${sourceId} and retired_at is null
      returning id, region_id, excluded_reason
    ), closed as (
      update machine_prices p set valid_to = ${now}::timestamptz
      from gone where p.machine_id = gone.id and p.valid_to is null
    ), unstamped as (
      delete from region_freshness where source_id = ${sourceId} returning region_id
    ), dirtied as (
      update regions set version = version + 1
      where id in (
        select region_id from gone where excluded_reason is null union select region_id from unstamped)
    )
    update lineage set providers_version = providers_version + 1
    where exists (select from sources where id = ${sourceId} and kind = 'catalogue')`;
}

async function retireClusters(sql: SessionSql, sourceId: string, now: string): Promise<void> {
  const owners = sql`select organization_id from clusters where source_id = ${sourceId} and retired_at is null`;
  await lockOrganizations(sql, owners);
  await sql`
    with gone as (
      update clusters set retired_at = ${now}::timestamptz where source_id = ${sourceId} and retired_at is null
      returning organization_id
    )
    update organizations set clusters_version = clusters_version + 1
    where id in (select organization_id from gone)`;
}
