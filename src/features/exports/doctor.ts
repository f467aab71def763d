import { type Finding, ok, problem } from '../../cli/doctor/finding.ts';
import { type Configured, databaseUrl, settingsOf } from '../../config/settings.ts';
import { openStore } from '../../db/connection/connect.ts';
import { span } from '../../lib/time-span.ts';
import { exportState, exportsMayBeBehind } from './queries.ts';
import { EXPORT_SETTINGS } from './settings.ts';

/** Whether the files of the catalogue are made, and are of its present state. */
export async function checkExports(config: Configured): Promise<Finding[]> {
  const check = 'exports';
  const { EXPORT_EVERY: every } = settingsOf(config, EXPORT_SETTINGS);
  if (every === 0) return [ok(check, 'no files of the catalogue are made, since EXPORT_EVERY is 0')];
  await using store = openStore({ url: databaseUrl(config), role: 'worker', connections: 1 });
  // A database that cannot be read is told of by the check of the database.
  const state = await exportState(store.sql).catch(() => undefined);
  if (!state) return [];
  const { version, made, behindSeconds } = state;
  if (behindSeconds > exportsMayBeBehind(every))
    return [
      problem(
        check,
        `the catalogue changed ${span(behindSeconds)} ago, and no files of it could be made since`,
        'read the log of the workers, which names the cause; often the disk of the database or of the temporary folder is full',
      ),
    ];
  if (made) return [ok(check, `files of the catalogue were made ${span(made.ageSeconds)} ago`)];
  return [
    ok(
      check,
      version === null ? 'no files yet: no catalogue was read' : 'the first files are still to be made',
    ),
  ];
}
