import { approveHeld, previewHeld, undoApproval } from '../app/run-source.ts';
import type { Environment } from '../config/config.ts';
import { decide, undoRejection } from '../db/queries/held.ts';
import { type DeciderOptions, decider } from './arguments.ts';
import { CommandFailure } from './failure.ts';
import {
  configured,
  decision as decisionOf,
  namedBatch,
  overtaken,
  readBatch,
  recordOf,
} from './hold-batch.ts';
import { headline, summary } from './hold-preview.ts';
import { openWorker } from './open-worker.ts';
import { publishNow } from './open-writer.ts';
import { print, printAside, printJson } from './print.ts';
import { confirm } from './terminal.ts';

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
  const { db, sql } = worker.store;
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
    if (!(await decide(db, batch.id, 'rejected', by))) throw await overtaken(sql, source);
    if (options.json)
      return printJson({ source, batch: batch.id, decision: 'rejected', by: by.by, reason: by.reason });
    print(
      `${source}: batch ${batch.id} is rejected; readers keep the last good catalogue. Until its next run: fleetbook hold undo ${source} ${batch.id}`,
    );
    return;
  }
  const result = await approveHeld(config, worker.store, configured(config.sources, source), batch.id, by);
  if (result.outcome === 'superseded' || result.outcome === 'cancelled') throw await overtaken(sql, source);
  const { added, changed, retired } = result.counts;
  const published = await publishNow(worker);
  if (options.json) {
    const { counts } = result;
    return printJson({
      source,
      batch: batch.id,
      decision: 'approved',
      by: by.by,
      reason: by.reason,
      counts,
      published,
    });
  }
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
  const { db, sql } = worker.store;
  const by = decider(config, options);
  const batch = await recordOf(sql, source, readBatch(named));
  if (!batch.reversible) {
    const decided = batch.status === 'approved' || batch.status === 'rejected';
    throw new CommandFailure(
      decided
        ? `${source}: batch ${batch.id} was ${decisionOf(batch)}; a run has stored or held something since, so what was before is not known any more. The next run of the source stores what it reads, or is held: fleetbook sync ${source}`
        : `${source}: there is no decision about batch ${batch.id} to take back: ${decisionOf(batch)}`,
    );
  }
  if (!options.yes && process.stdin.isTTY) {
    printAside(`${headline(batch)}\n${decisionOf(batch)}`);
    await confirm(`This takes the decision back.`, 'nothing is undone', process.stdin, process.stderr);
  }
  if (batch.status === 'rejected') {
    if (!(await undoRejection(db, batch.id, by))) throw await overtaken(sql, source);
    if (options.json)
      return printJson({ source, batch: batch.id, undone: 'rejected', by: by.by, reason: by.reason });
    print(`${source}: batch ${batch.id} waits again: fleetbook hold show ${source}`);
    return;
  }
  const result = await undoApproval(config, worker.store, configured(config.sources, source), batch.id, by);
  if (result.outcome === 'superseded' || result.outcome === 'cancelled') throw await overtaken(sql, source);
  const { counts } = result;
  const published = await publishNow(worker);
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
