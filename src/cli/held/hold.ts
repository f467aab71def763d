import type { Command } from 'commander';
import { approveBatch, previewHeld, rejectBatch, undoDecision } from '../../app/actions/batch.ts';
import { unconfirmedApproval } from '../../app/actions/inputs.ts';
import type { CommandContext } from '../../app/feature.ts';
import { FEATURE_CONFIG } from '../../app/feature-config.ts';
import { readNamedSources } from '../../config/named-sources.ts';
import type { Environment } from '../../config/source-config.ts';
import type { ClientDatabase } from '../../db/connection/client.ts';
import { type BatchRecord, batchRecords, pendingBatches } from '../../db/held-batches.ts';
import type { HeldSample } from '../../domain/held-sample.ts';
import { type BatchTrail, batchTrail } from '../../features/console/queries/batches.ts';
import { runRecord } from '../../features/console/queries/runs.ts';
import { lineWidth } from '../runs/change-rows.ts';
import { diffLines, diffOf, runJson } from '../runs/runs.ts';
import { CommandFailure } from '../terminal/failure.ts';
import { openDatabase } from '../terminal/open.ts';
import { openWorker } from '../terminal/open-worker.ts';
import {
  add,
  addChange,
  addRows,
  type Deciding,
  type Json,
  type PageOptions,
  pageLimit,
  readArguments,
  SOURCE,
  YES,
} from '../terminal/options.ts';
import {
  alignedLines,
  fitted,
  printAside,
  show,
  terminalWidth,
  updatedLater,
  wrapped,
} from '../terminal/output.ts';
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

export function define(program: Command, { env }: CommandContext): void {
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

export async function holdList(env: Environment, options: Json & { all?: boolean }): Promise<void> {
  await using database = openDatabase(env);
  const { db } = database;
  const batches = options.all ? await batchRecords(db, undefined) : await pendingBatches(db);
  show(options, batches, () => {
    if (batches.length === 0) return options.all ? 'no batch has ever been held' : 'no batch is held';
    const width = terminalWidth();
    return batches
      .flatMap((batch) => [
        wrapped(headline(batch), width).trimEnd(),
        ...(options.all ? fitted([`  ${decision(batch)}`], width) : []),
      ])
      .join('\n');
  });
}

async function holdShow(
  env: Environment,
  source: string,
  named: string | undefined,
  options: PageOptions,
): Promise<void> {
  const limit = pageLimit(options);
  const { settings, sources } = readNamedSources(env, FEATURE_CONFIG.sections);
  await using store = openDatabase(env);
  const { db } = store;
  const batch =
    named === undefined ? await pendingBatch(db, source) : await recordOf(db, source, readBatch(named));
  if (batch.status !== 'pending') return await showDecided(db, batch, limit, options);
  const preview = await previewHeld({ settings }, store, configured(sources, source), batch.id, limit);
  show(
    options,
    { ...batch, ...preview },
    () =>
      `${wrapped(headline(batch), terminalWidth())}${previewText(preview, limit)}
fleetbook hold approve ${source} ${batch.id}   stores it
fleetbook hold reject ${source} ${batch.id}    discards it`,
  );
}

async function showDecided(
  db: ClientDatabase,
  batch: BatchRecord,
  limit: number | undefined,
  options: Json,
): Promise<void> {
  const trail = await batchTrail(db, batch.id);
  const run = trail.storedBy === null ? undefined : await runRecord(db, trail.storedBy);
  const diff = run && (await diffOf(db, run, limit));
  show(options, { ...batch, trail, stored: run && diff ? runJson(run, diff) : null }, () => {
    const width = lineWidth();
    const head = [headline(batch), decision(batch), ...trailLines(batch, trail)];
    const text = head.map((line) => wrapped(line, width)).join('');
    if (run && diff) return `${text}\nwhat its approval changed:\n${diffLines(run, diff, width)}`;
    return text + worstRows(batch.worst);
  });
}

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
  command: 'approve' | 'reject',
  options: Deciding,
): Promise<void> {
  await using worker = await openWorker(env, options);
  const { by, config, store } = worker;
  const { db } = store;
  const batch = await namedBatch(db, source, named, command);
  const { id } = batch;
  if (command === 'approve' && !process.stdin.isTTY) {
    const approval = unconfirmedApproval(`fleetbook hold approve ${source} ${id} --yes --reason <text>`);
    readArguments(approval, options, { reason: 'nothing was decided:' });
  }
  if (!options.yes) {
    printAside(headline(batch));
    if (command === 'approve')
      printAside(summary(await previewHeld(config, store, configured(config.sources, source), id, 1)));
    const question = `This ${command === 'approve' ? 'stores' : 'discards'} batch ${id} of ${source}.`;
    await confirm(question, 'nothing was decided');
  }
  const undo = `To undo this before its next run: fleetbook hold undo ${source} ${id}`;
  const recorded = { by: by.by, reason: by.reason };
  if (command === 'reject') {
    if (!(await rejectBatch(store, id, by))) throw await overtaken(db, source);
    return show(
      options,
      { source, batch: id, decision: 'rejected', ...recorded },
      () => `${source}: batch ${id} is rejected; readers keep the previous data. ${undo}`,
    );
  }
  const stored = await approveBatch(config, worker, configured(config.sources, source), id, by);
  if (!stored) throw await overtaken(db, source);
  const { counts, published } = stored;
  show(
    options,
    { source, batch: id, decision: 'approved', ...recorded, counts, published },
    () =>
      `${source}: batch ${id} is stored: ${counts.added} new, ${counts.changed} changed, ${counts.retired} retired${updatedLater(published)}. ${undo}`,
  );
}

/** Undoes a decision, unless a later run of the source has stored or held something. */
async function holdUndo(env: Environment, source: string, named: string, options: Deciding): Promise<void> {
  await using worker = await openWorker(env, options);
  const { by, config, store } = worker;
  const batch = await recordOf(store.db, source, readBatch(named));
  const { id } = batch;
  if (!batch.reversible) {
    const decided = batch.status === 'approved' || batch.status === 'rejected';
    throw new CommandFailure(
      decided
        ? `${source}: batch ${id} was ${decision(batch)}; a later run has stored or held something, so the decision cannot be undone. The next run stores what it reads, or is held: fleetbook sync ${source}`
        : `${source}: batch ${id} has no decision to undo: ${decision(batch)}`,
    );
  }
  if (!options.yes) {
    printAside(`${headline(batch)}\n${decision(batch)}`);
    await confirm('This undoes the decision.', 'nothing was undone');
  }
  const sourceOf = () => configured(config.sources, source);
  const undone = await undoDecision(config, worker, batch, sourceOf, by);
  if (!undone) throw await overtaken(store.db, source);
  const recorded = { by: by.by, reason: by.reason };
  if (undone.counts === null)
    return show(
      options,
      { source, batch: id, undone: 'rejected', ...recorded },
      () => `${source}: batch ${id} waits again: fleetbook hold show ${source}`,
    );
  const { counts, published } = undone;
  show(
    options,
    { source, batch: id, undone: 'approved', ...recorded, counts, published },
    () =>
      `${source}: readers have the data of before batch ${id} again: ${counts.added} returned, ${counts.changed} changed back, ${counts.retired} retired. If the source reports the same again, its next run is held again`,
  );
}
