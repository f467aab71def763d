/** Held batches: what waits, what each would change, and the decisions. */
import { approveBatch, previewHeld, rejectBatch, undoDecision } from '../../app/actions/batch.ts';
import { FEATURE_CONFIG } from '../../app/feature-settings.ts';
import type { Environment } from '../../config/config.ts';
import { readNamedSources } from '../../config/named-sources.ts';
import type { Sql } from '../../db/connection/client.ts';
import {
  type BatchRecord,
  type BatchTrail,
  batchRecords,
  batchTrail,
  pendingBatches,
} from '../../db/held-batches.ts';
import { runRecord } from '../../db/runs/records.ts';
import type { HeldSample } from '../../domain/held-sample.ts';
import { openWorker } from '../open-worker.ts';
import { lineWidth } from '../runs/change-rows.ts';
import { diffLines, diffOf, runJson } from '../runs/runs.ts';
import { type DeciderOptions, decider, type PageOptions, pageLimit } from '../terminal/arguments.ts';
import { CommandFailure } from '../terminal/failure.ts';
import { openDatabase } from '../terminal/open-database.ts';
import { print, printAside, printJson, printText } from '../terminal/print.ts';
import { alignedLines, fitted, terminalWidth, wrapped } from '../terminal/table.ts';
import { confirm } from '../terminal/terminal.ts';
import {
  configured,
  decision,
  namedBatch,
  overtaken,
  pendingBatch,
  readBatch,
  recordOf,
} from './hold-batch.ts';
import { headline, previewText, summary } from './hold-preview.ts';

/** What waits; with `all` what was decided as well: when, by whom and why. */
export async function holdList(env: Environment, options: { json?: boolean; all?: boolean }): Promise<void> {
  await using register = openDatabase(env);
  const { sql } = register;
  const batches = options.all ? await batchRecords(sql, undefined) : await pendingBatches(sql);
  if (options.json) return printJson(batches);
  if (batches.length === 0) print(options.all ? 'nothing was ever held' : 'nothing is held');
  for (const batch of batches) {
    printText(wrapped(headline(batch), terminalWidth()));
    if (options.all)
      printText(
        fitted([`  ${decision(batch)}`], terminalWidth())
          .map((line) => `${line}\n`)
          .join(''),
      );
  }
}

/** Shows what a pending batch would change, or the decision about another one and its result. */
export async function holdShow(
  env: Environment,
  source: string,
  named: string | undefined,
  options: PageOptions,
): Promise<void> {
  const limit = pageLimit(options);
  const { settings, sources } = readNamedSources(env, FEATURE_CONFIG.sections);
  await using store = openDatabase(env);
  const { sql } = store;
  const batch =
    named === undefined ? await pendingBatch(sql, source) : await recordOf(sql, source, readBatch(named));
  if (batch.status !== 'pending') return await showDecided(sql, batch, limit, options);
  const preview = await previewHeld({ settings }, store, configured(sources, source), batch.id, limit);
  if (options.json) return printJson({ ...batch, ...preview });
  printText(wrapped(headline(batch), terminalWidth()));
  printText(previewText(preview, limit));
  print(
    `\nfleetbook hold approve ${source} ${batch.id}   stores it\nfleetbook hold reject ${source} ${batch.id}    drops it`,
  );
}

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

export interface DecideOptions extends DeciderOptions {
  readonly yes?: boolean;
  readonly json?: boolean;
}

export async function holdDecide(
  env: Environment,
  source: string,
  named: string | undefined,
  decision: 'approve' | 'reject',
  options: DecideOptions = {},
): Promise<void> {
  const { config, worker } = openWorker(env);
  await using _ = worker;
  const { sql } = worker.store;
  const by = decider(config, options);
  const batch = await namedBatch(sql, source, named, decision);
  if (!options.yes && process.stdin.isTTY) {
    printAside(headline(batch));
    if (decision === 'approve') {
      printAside(
        summary(await previewHeld(config, worker.store, configured(config.sources, source), batch.id, 1)),
      );
    }
    const question = `This ${decision === 'approve' ? 'stores' : 'drops'} batch ${batch.id} of ${source}.`;
    await confirm(question, 'nothing is decided', process.stdin, process.stderr);
  }
  if (decision === 'reject') {
    if (!(await rejectBatch(worker.store, batch.id, by))) throw await overtaken(sql, source);
    if (options.json)
      return printJson({ source, batch: batch.id, decision: 'rejected', by: by.by, reason: by.reason });
    print(
      `${source}: batch ${batch.id} is rejected; readers keep the last good catalogue. Until its next run: fleetbook hold undo ${source} ${batch.id}`,
    );
    return;
  }
  const stored = await approveBatch(config, worker, configured(config.sources, source), batch.id, by);
  if (!stored) throw await overtaken(sql, source);
  const { counts, published } = stored;
  const { added, changed, retired } = counts;
  if (options.json)
    return printJson({
      source,
      batch: batch.id,
      decision: 'approved',
      by: by.by,
      reason: by.reason,
      counts,
      published,
    });
  print(
    `${source}: batch ${batch.id} is stored: ${added} new, ${changed} changed, ${retired} retired${published ? '' : '; the cache is away and gets it later'}. Until its next run: fleetbook hold undo ${source} ${batch.id}`,
  );
}

/** Takes a decision back, as long as no run of the source has stored or held anything since. */
export async function holdUndo(
  env: Environment,
  source: string,
  named: string,
  options: DecideOptions = {},
): Promise<void> {
  const { config, worker } = openWorker(env);
  await using _ = worker;
  const { sql } = worker.store;
  const by = decider(config, options);
  const batch = await recordOf(sql, source, readBatch(named));
  if (!batch.reversible) {
    const decided = batch.status === 'approved' || batch.status === 'rejected';
    throw new CommandFailure(
      decided
        ? `${source}: batch ${batch.id} was ${decision(batch)}; a run has stored or held something since, so what was before is not known any more. The next run of the source stores what it reads, or is held: fleetbook sync ${source}`
        : `${source}: there is no decision about batch ${batch.id} to take back: ${decision(batch)}`,
    );
  }
  if (!options.yes && process.stdin.isTTY) {
    printAside(`${headline(batch)}\n${decision(batch)}`);
    await confirm(`This takes the decision back.`, 'nothing is undone', process.stdin, process.stderr);
  }
  const sourceOf = () => configured(config.sources, source);
  const undone = await undoDecision(config, worker, batch, sourceOf, by);
  if (!undone) throw await overtaken(sql, source);
  if (undone.counts === null) {
    if (options.json)
      return printJson({ source, batch: batch.id, undone: 'rejected', by: by.by, reason: by.reason });
    print(`${source}: batch ${batch.id} waits again: fleetbook hold show ${source}`);
    return;
  }
  const { counts, published } = undone;
  if (options.json)
    return printJson({
      source,
      batch: batch.id,
      undone: 'approved',
      by: by.by,
      reason: by.reason,
      counts,
      published,
    });
  print(
    `${source}: readers have again what there was before batch ${batch.id}: ${counts.added} came back, ${counts.changed} changed back, ${counts.retired} retired. The next run asks again if the source says the same`,
  );
}
