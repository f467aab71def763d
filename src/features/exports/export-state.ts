/** The state of the catalogue and of the newest files. It decides whether files are due, and whether they are behind. */
import { type Finding, ok, problem } from '../../cli/doctor/finding.ts';
import { type Configured, databaseUrl, settingsOf } from '../../config/settings.ts';
import { type Database, openStore } from '../../db/connection/connect.ts';
import { sql } from '../../db/connection/drizzle.ts';
import { only, type RowOf, rfc3339 } from '../../db/connection/statements.ts';
import type { Condition } from '../../domain/alert.ts';
import { span } from '../../domain/text/time-span.ts';
import { EXPORT_SETTINGS } from './settings.ts';

/** Part of every version. Raise it if the same rows make other files. */
const FORMAT = 4;

export interface ExportState {
  /** Names the state; null before the first region is read. */
  readonly version: string | null;
  readonly currency: string | null;
  readonly now: string;
  readonly made: {
    readonly version: string;
    readonly createdAt: string;
    readonly ageSeconds: number;
  } | null;
  /** Seconds since the catalogue changed; 0 if the files are of its current state. */
  readonly behindSeconds: number;
}

export async function exportState(db: Database): Promise<ExportState> {
  // Versions of documents only rise, so no two states have the same name.
  const rows = await db.execute<RowOf<Omit<ExportState, 'behindSeconds'> & { aheadSeconds: number }>>(sql`
    select l.currency, ${rfc3339(sql`now()`, 'us')} as now,
      case when exists (select from region_freshness) then
        left(translate(encode(sha256(convert_to(concat_ws(' ', ${FORMAT}::int, l.id, l.providers_version, l.currency, (
          select string_agg(r.id || ':' || r.version, ',' order by r.id) from regions r where r.organization_id is null
        )), 'UTF8')), 'base64'), '+/', '-_'), 22) end as version,
      (select json_build_object('version', e.version,
          'createdAt', ${rfc3339(sql`e.created_at`, 'us')},
          'ageSeconds', extract(epoch from clock_timestamp() - e.created_at))
        from exports e order by e.id desc limit 1) as made,
      -- Counts from the first run that changed a catalogue after the newest files.
      (select coalesce(greatest(extract(epoch from now() - min(c.changed_at)), 0), 0)::float8
        from sync_runs c join sources s on s.id = c.source_id and s.kind = 'catalogue'
        where c.changed_at > coalesce((select created_at from exports order by id desc limit 1), '-infinity')
      ) as "aheadSeconds"
    from lineage l`);
  const { aheadSeconds, ...state } = only(rows);
  const isCurrent = state.version === null || state.version === state.made?.version;
  return { ...state, behindSeconds: isCurrent ? 0 : aheadSeconds };
}

/** Returns how far files may be behind (seconds) before an operator should know, for files made every so many seconds. */
function exportsMayBeBehind(everySeconds: number): number {
  return 3600 + 2 * everySeconds;
}

export async function findBehind(db: Database, config: Configured): Promise<Condition[]> {
  const { EXPORT_EVERY: every } = settingsOf(config, EXPORT_SETTINGS);
  if (every === 0) return [];
  const { behindSeconds, made } = await exportState(db);
  if (behindSeconds <= exportsMayBeBehind(every)) return [];
  const newest = made ? `the newest files are of ${made.createdAt}` : 'there are no files yet';
  return [
    {
      kind: 'exports_behind',
      subject: 'exports',
      summary: `the catalogue changed ${span(behindSeconds)} ago, and no new files could be made; ${newest}. The log of the workers has the cause`,
      details: { behindSeconds: Math.round(behindSeconds), createdAt: made?.createdAt ?? null },
    },
  ];
}

export async function checkExports(config: Configured): Promise<Finding[]> {
  const { EXPORT_EVERY: every } = settingsOf(config, EXPORT_SETTINGS);
  const check = 'exports';
  if (every === 0) return [ok(check, 'EXPORT_EVERY is 0: no files of the catalogue are made')];
  await using store = openStore({ url: databaseUrl(config), role: 'worker', connections: 1 });
  // The check of the database reports a database that cannot be read.
  const state = await exportState(store.db).catch(() => undefined);
  if (!state) return [];
  const { version, made, behindSeconds } = state;
  if (behindSeconds > exportsMayBeBehind(every)) {
    const found = `the catalogue changed ${span(behindSeconds)} ago, and no new files could be made`;
    const remedy =
      'read the log of the workers; often the disk of the database or the temporary folder is full';
    return [problem(check, found, remedy)];
  }
  if (made) return [ok(check, `files of the catalogue were made ${span(made.ageSeconds)} ago`)];
  const reason = version === null ? 'no catalogue was read' : 'a worker makes the first files soon';
  return [ok(check, `no files yet: ${reason}`)];
}
