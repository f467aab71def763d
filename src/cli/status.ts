import { nextSlot } from '../../workers/schedule.ts';
import type { Environment } from '../config.ts';
import { type SourceStatus, sourceStatus } from '../store/status.ts';
import { ago, alignedTable, printJson } from './table.ts';
import { openWriteTier } from './write-tier.ts';

interface ShownStatus extends SourceStatus {
  /** RFC 3339; null for a source that is not configured here (any more). */
  readonly nextSlot: string | null;
}

export async function statusCommand(env: Environment, options: { json?: boolean }): Promise<void> {
  const { config, tier } = openWriteTier(env);
  await using _ = tier;
  const stored = new Map((await sourceStatus(tier.store.sql)).map((status) => [status.id, status]));
  const now = new Date();
  const shown: ShownStatus[] = config.sources.map((source) => ({
    ...(stored.get(source.id) ?? neverRan(source.id, source.kind)),
    nextSlot: nextSlot(source.schedule, now),
  }));
  for (const status of stored.values()) {
    if (!shown.some(({ id }) => id === status.id)) shown.push({ ...status, nextSlot: null });
  }
  if (options.json) printJson(shown);
  else if (shown.length === 0) console.log('no source is configured and none ever ran');
  else process.stdout.write(table(shown, now));
}

function neverRan(id: string, kind: SourceStatus['kind']): SourceStatus {
  return { id, kind, lastRun: null, verifiedAt: null, known: 0, published: 0, quarantined: 0, held: 0 };
}

/** One row a source, and under it what went wrong, if anything did. */
export function table(sources: readonly ShownStatus[], now: Date): string {
  const head = [
    'SOURCE',
    'LAST RUN',
    'OUTCOME',
    'LAST GOOD',
    'NEXT',
    'KNOWN',
    'PUBLISHED',
    'QUARANTINED',
    'HELD',
  ];
  const rows = sources.map((source) => [
    source.id,
    ago(source.lastRun?.startedAt, now),
    source.lastRun?.outcome ?? 'never ran',
    ago(source.verifiedAt, now),
    source.nextSlot?.slice(11, 16) ?? '-',
    String(source.known),
    String(source.published),
    String(source.quarantined),
    String(source.held),
  ]);
  const troubles = sources
    .filter((source) => source.lastRun?.error)
    .map((source) => `${source.id}: ${source.lastRun?.error}\n`);
  return [alignedTable(head, rows), ...(troubles.length > 0 ? ['\n', ...troubles] : [])].join('');
}
