import { type Configured, settingsOf } from '../../config/settings.ts';
import type { Sql } from '../../db/connection/client.ts';
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
