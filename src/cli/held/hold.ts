/** Held batches: lists them, shows their changes, and stores decisions. */
import type { Command } from 'commander';
import type { Environment } from '../../config/source-config.ts';
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
import { lineWidth } from '../runs/change-rows.ts';
import { diffLines, diffOf, runJson } from '../runs/runs.ts';
import { type PageOptions, pageLimit } from '../terminal/arguments.ts';
import {
  add,
  addChange,
  addRows,
  type Deciding,
  type Env,
  type Json,
  SOURCE,
} from '../terminal/command-parts.ts';
import { CommandFailure } from '../terminal/failure.ts';
import { openWorker } from '../terminal/open.ts';
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

export function define(program: Command, env: Env): void {
  const hold = program.command('hold').description('batches that a guard held for a decision');
  add(hold, 'list', 'show the held batches and the reasons')
    .option('--all', 'include decided batches: when, by whom and why')
    .action((options) => holdList(env(), options));
  addRows(
    hold,
    'show',
    'show what a held batch would change, or the result of a decided one',
    'rows of each kind of change',
  )
    .argument(...SOURCE)
    .argument('[batch]', 'number of the batch (default: the one that waits)')
    .action((id: string, batch: string | undefined, page: PageOptions) => holdShow(env(), id, batch, page));
  for (const decision of ['approve', 'reject'] as const) {
    addChange(hold, decision, decision === 'approve' ? 'store a held batch' : 'discard a held batch')
      .argument(...SOURCE)
      .argument('[batch]', 'number of the batch; required')
      .option(...YES)
      .action((id: string, batch: string | undefined, options) =>
        holdDecide(env(), id, batch, decision, options),
      );
  }
  addChange(hold, 'undo', 'undo a decision; possible until the next run of the source')
    .argument(...SOURCE)
    .argument('<batch>', 'number of the batch')
    .option(...YES)
    .action((id: string, batch: string, options) => holdUndo(env(), id, batch, options));
}

const YES = ['--yes', 'do not ask for confirmation'] as const;

/** `hold list` needs neither of these, and does not load them. */
const actions = () => import('../../app/actions/batch.ts');
async function namedSources(env: Environment) {
  const [{ readNamedSources }, { FEATURE_CONFIG }] = await Promise.all([
    import('../../config/named-sources.ts'),
    import('../../app/features.ts'),
  ]);
  return readNamedSources(env, FEATURE_CONFIG.sections);
}

export async function holdList(env: Environment, options: Json & { all?: boolean }): Promise<void> {
  await using database = openDatabase(env);
  const { sql } = database;
  const batches = options.all ? await batchRecords(sql, undefined) : await pendingBatches(sql);
  if (options.json) return printJson(batches);
  if (batches.length === 0) print(options.all ? 'no batch has ever been held' : 'no batch is held');
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

async function holdShow(
  env: Environment,
  source: string,
  named: string | undefined,
  options: PageOptions,
): Promise<void> {
  const limit = pageLimit(options);
  const { settings, sources } = await namedSources(env);
  await using store = openDatabase(env);
  const { sql } = store;
  const batch =
    named === undefined ? await pendingBatch(sql, source) : await recordOf(sql, source, readBatch(named));
  if (batch.status !== 'pending') return await showDecided(sql, batch, limit, options);
  const { previewHeld } = await actions();
  const preview = await previewHeld({ settings }, store, configured(sources, source), batch.id, limit);
  if (options.json) return printJson({ ...batch, ...preview });
  printText(wrapped(headline(batch), terminalWidth()));
  printText(previewText(preview, limit));
  print(
    `\nfleetbook hold approve ${source} ${batch.id}   stores it\nfleetbook hold reject ${source} ${batch.id}    discards it`,
  );
}

/** @param limit rows of each kind of change; undefined for all */
async function showDecided(
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

/** Returns the runs of a batch, and the batch that replaced it. */
function trailLines({ sourceId }: BatchRecord, trail: BatchTrail): string[] {
  const { heldBy, storedBy, undoneBy, replacedBy, successor } = trail;
  const runs = [
    ['read by', heldBy],
    ['stored by', storedBy],
    ['undone by', undoneBy],
    ['replaced by', replacedBy?.id ?? null],
  ].flatMap(([what, id]) => (id === null ? [] : [`${what} run ${id}`]));
  return [
    ...(runs.length === 0 ? [] : [`${runs.join(', ')}; see: fleetbook run <number>`]),
    ...(successor === null ? [] : [`batch ${successor} waits now: fleetbook hold show ${sourceId}`]),
  ];
}

/** Returns the sample rows of a batch that was not stored. Its other rows are deleted. */
function worstRows({ rows, total }: HeldSample): string {
  const lines = alignedLines(
    rows.map(({ change, name, place, before, after }) => [
      change,
      `${name} @ ${place}`,
      `${before ?? '-'} → ${after ?? 'not listed'}`,
    ]),
  );
  const more = total > rows.length ? `  and ${total - rows.length} more, which are deleted\n` : '';
  return `\nwhat it would have changed:\n${lines.join('')}${more}`;
}

async function holdDecide(
  env: Environment,
  source: string,
  named: string | undefined,
  decision: 'approve' | 'reject',
  options: Deciding,
): Promise<void> {
  await using worker = await openWorker(env, options);
  const {
    by,
    config,
    store: { sql },
  } = worker;
  const { approveBatch, previewHeld, rejectBatch } = await actions();
  const batch = await namedBatch(sql, source, named, decision);
  if (!options.yes && process.stdin.isTTY) {
    printAside(headline(batch));
    if (decision === 'approve') {
      printAside(
        summary(await previewHeld(config, worker.store, configured(config.sources, source), batch.id, 1)),
      );
    }
    const question = `This ${decision === 'approve' ? 'stores' : 'discards'} batch ${batch.id} of ${source}.`;
    await confirm(question, 'nothing was decided', process.stdin, process.stderr);
  }
  if (decision === 'reject') {
    if (!(await rejectBatch(worker.store, batch.id, by))) throw await overtaken(sql, source);
    if (options.json)
      return printJson({ source, batch: batch.id, decision: 'rejected', by: by.by, reason: by.reason });
    print(
      `${source}: batch ${batch.id} is rejected; readers keep the previous data. To undo this before its next run: fleetbook hold undo ${source} ${batch.id}`,
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
    `${source}: batch ${batch.id} is stored: ${added} new, ${changed} changed, ${retired} retired${published ? '' : '; the cache cannot be reached and is updated later'}. To undo this before its next run: fleetbook hold undo ${source} ${batch.id}`,
  );
}

/** Undoes a decision, unless a later run of the source has stored or held something. */
async function holdUndo(env: Environment, source: string, named: string, options: Deciding): Promise<void> {
  await using worker = await openWorker(env, options);
  const {
    by,
    config,
    store: { sql },
  } = worker;
  const { undoDecision } = await actions();
  const batch = await recordOf(sql, source, readBatch(named));
  if (!batch.reversible) {
    const decided = batch.status === 'approved' || batch.status === 'rejected';
    throw new CommandFailure(
      decided
        ? `${source}: batch ${batch.id} was ${decision(batch)}; a later run has stored or held something, so the decision cannot be undone. The next run stores what it reads, or is held: fleetbook sync ${source}`
        : `${source}: batch ${batch.id} has no decision to undo: ${decision(batch)}`,
    );
  }
  if (!options.yes && process.stdin.isTTY) {
    printAside(`${headline(batch)}\n${decision(batch)}`);
    await confirm('This undoes the decision.', 'nothing was undone', process.stdin, process.stderr);
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
    `${source}: readers have the data of before batch ${batch.id} again: ${counts.added} returned, ${counts.changed} changed back, ${counts.retired} retired. If the source reports the same again, its next run is held again`,
  );
}
