/** Shows a decided batch: the decision, its runs and its changes. */
import type { Sql } from '../db/client.ts';
import { type BatchRecord, type BatchTrail, batchTrail } from '../db/reads/held.ts';
import { runRecord } from '../db/reads/runs.ts';
import type { HeldSample } from '../domain/held-sample.ts';
import { lineWidth } from './change-rows.ts';
import { decision } from './hold-batch.ts';
import { headline } from './hold-preview.ts';
import { printJson, printText } from './print.ts';
import { diffLines, diffOf, runJson } from './runs.ts';
import { alignedLines, wrapped } from './table.ts';

/** @param limit rows of each kind of change; undefined for all */
export async function showDecided(
  sql: Sql,
  batch: BatchRecord,
  limit: number | undefined,
  options: { readonly json?: boolean },
): Promise<void> {
  const trail = await batchTrail(sql, batch.id);
  const run = trail.storedBy === null ? undefined : await runRecord(sql, trail.storedBy);
  const diff = run && (await diffOf(sql, run, limit));
  if (options.json) return printJson({ ...batch, trail, stored: run && diff ? runJson(run, diff) : null });
  const width = lineWidth();
  const head = [headline(batch), decision(batch), ...trailLines(batch, trail)];
  printText(head.map((line) => wrapped(line, width)).join(''));
  if (run && diff) printText(`\nwhat its approval changed:\n${diffLines(run, diff, width)}`);
  else if (batch.worst) printText(worstRows(batch.worst));
}

/** The runs of a batch, and the batch that waits instead of it. */
function trailLines({ sourceId }: BatchRecord, trail: BatchTrail): string[] {
  const { heldBy, storedBy, undoneBy, replacedBy, successor } = trail;
  const runs = [
    ['read by', heldBy],
    ['stored by', storedBy],
    ['taken back by', undoneBy],
    ['replaced by', replacedBy?.id ?? null],
  ].flatMap(([what, id]) => (id === null ? [] : [`${what} run ${id}`]));
  return [
    ...(runs.length === 0 ? [] : [`${runs.join(', ')}; see: fleetbook run <number>`]),
    ...(successor === null ? [] : [`batch ${successor} waits now: fleetbook hold show ${sourceId}`]),
  ];
}

/** The rows that said most about a batch that was not stored: its items are not kept. */
function worstRows({ rows, total }: HeldSample): string {
  const lines = alignedLines(
    rows.map(({ change, name, place, before, after }) => [
      change,
      `${name} @ ${place}`,
      `${before ?? '-'} → ${after ?? 'not listed'}`,
    ]),
  );
  const more = total > rows.length ? `  and ${total - rows.length} more, which are not kept\n` : '';
  return `\nwhat it would have changed:\n${lines.join('')}${more}`;
}
