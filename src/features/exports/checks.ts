import { type Finding, ok, problem } from '../../cli/doctor/finding.ts';
import { type Configured, databaseUrl, settingsOf } from '../../config/settings.ts';
import type { Sql } from '../../db/connection/client.ts';
import { openStore } from '../../db/connection/connect.ts';
import type { Condition } from '../../domain/alert.ts';
import { span } from '../../domain/text/time-span.ts';
import { exportState, exportsMayBeBehind } from './queries.ts';
import { EXPORT_SETTINGS } from './settings.ts';

export async function findBehind(sql: Sql, config: Configured): Promise<Condition[]> {
  const { EXPORT_EVERY: every } = settingsOf(config, EXPORT_SETTINGS);
  if (every === 0) return [];
  const { behindSeconds, made } = await exportState(sql);
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
  const check = 'exports';
  const { EXPORT_EVERY: every } = settingsOf(config, EXPORT_SETTINGS);
  if (every === 0) return [ok(check, 'EXPORT_EVERY is 0: no files of the catalogue are made')];
  await using store = openStore({ url: databaseUrl(config), role: 'worker', connections: 1 });
  // The check of the database reports a database that cannot be read.
  const state = await exportState(store.sql).catch(() => undefined);
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
