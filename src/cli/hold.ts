import { approveHeld, previewHeld, undoApproval } from '../app/run-source.ts';
import type { Environment } from '../config/config.ts';
import { batchRecords, decide, pendingBatches, undoRejection } from '../db/queries/held.ts';
import { confirm } from './confirm.ts';
import { CommandFailure } from './failure.ts';
import {
  configured,
  decision as decisionOf,
  namedBatch,
  overtaken,
  pendingBatch,
  readBatch,
  recordOf,
} from './hold-batch.ts';
import { headline, previewText, summary } from './hold-preview.ts';
import { type DeciderOptions, decider } from './operator.ts';
import { type PageOptions, pageLimit } from './paging.ts';
import { printJson } from './table.ts';
import { openWriteTier, publishNow } from './write-tier.ts';

export interface DecideOptions extends DeciderOptions {
  readonly yes?: boolean;
  readonly json?: boolean;
}

/** What waits; with `all` what was decided as well: when, by whom and why. */
export async function holdList(env: Environment, options: { json?: boolean; all?: boolean }): Promise<void> {
  const { tier } = openWriteTier(env);
  await using _ = tier;
  const { sql } = tier.store;
  const batches = options.all ? await batchRecords(sql, undefined) : await pendingBatches(sql);
  if (options.json) {
    printJson(batches);
    return;
  }
  if (batches.length === 0) console.log(options.all ? 'nothing was ever held' : 'nothing is held');
  for (const batch of batches) {
    console.log(headline(batch));
    if (options.all) console.log(`  ${decisionOf(batch)}`);
  }
}

export async function holdShow(
  env: Environment,
  source: string,
  named: string | undefined,
  options: PageOptions,
): Promise<void> {
  const limit = pageLimit(options);
  const { config, tier } = openWriteTier(env);
  await using _ = tier;
  const { sql } = tier.store;
  const batch =
    named === undefined ? await pendingBatch(sql, source) : await recordOf(sql, source, readBatch(named));
  if (batch.status !== 'pending') {
    throw new CommandFailure(
      `${source}: batch ${batch.id} does not wait any more: ${decisionOf(batch)}; what waits is in: fleetbook hold list`,
    );
  }
  const preview = await previewHeld(config, tier.store, configured(config, source), batch.id, limit);
  if (options.json) {
    printJson({ ...batch, ...preview });
    return;
  }
  console.log(headline(batch));
  process.stdout.write(previewText(preview, limit));
  console.log(
    `\nfleetbook hold approve ${source} ${batch.id}   stores it\nfleetbook hold reject ${source} ${batch.id}    drops it`,
  );
}

export async function holdDecide(
  env: Environment,
  source: string,
  named: string | undefined,
  decision: 'approve' | 'reject',
  options: DecideOptions = {},
): Promise<void> {
  const { config, tier } = openWriteTier(env);
  await using _ = tier;
  const { sql } = tier.store;
  const by = decider(config, options);
  const batch = await namedBatch(sql, source, named, decision);
  if (!options.yes && process.stdin.isTTY) {
    console.error(headline(batch));
    if (decision === 'approve') {
      console.error(summary(await previewHeld(config, tier.store, configured(config, source), batch.id, 1)));
    }
    const question = `This ${decision === 'approve' ? 'stores' : 'drops'} batch ${batch.id} of ${source}.`;
    await confirm(question, 'nothing is decided', process.stdin, process.stderr);
  }
  if (decision === 'reject') {
    if (!(await decide(sql, batch.id, 'rejected', by))) throw await overtaken(sql, source);
    if (options.json) return printJson({ source, batch: batch.id, decision: 'rejected', ...by });
    console.log(
      `${source}: batch ${batch.id} is rejected; readers keep the last good catalogue. Until its next run: fleetbook hold undo ${source} ${batch.id}`,
    );
    return;
  }
  const result = await approveHeld(config, tier.store, configured(config, source), batch.id, by);
  if (result.outcome === 'superseded') throw await overtaken(sql, source);
  const { added, changed, retired } = result.counts;
  const published = await publishNow(tier);
  if (options.json) {
    const { counts } = result;
    return printJson({ source, batch: batch.id, decision: 'approved', ...by, counts, published });
  }
  console.log(
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
  const { config, tier } = openWriteTier(env);
  await using _ = tier;
  const { sql } = tier.store;
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
    console.error(`${headline(batch)}\n${decisionOf(batch)}`);
    await confirm(`This takes the decision back.`, 'nothing is undone', process.stdin, process.stderr);
  }
  if (batch.status === 'rejected') {
    if (!(await undoRejection(sql, batch.id, by))) throw await overtaken(sql, source);
    if (options.json) return printJson({ source, batch: batch.id, undone: 'rejected', ...by });
    console.log(`${source}: batch ${batch.id} waits again: fleetbook hold show ${source}`);
    return;
  }
  const result = await undoApproval(config, tier.store, configured(config, source), batch.id, by);
  if (result.outcome === 'superseded') throw await overtaken(sql, source);
  const { counts } = result;
  const published = await publishNow(tier);
  if (options.json)
    return printJson({ source, batch: batch.id, undone: 'approved', ...by, counts, published });
  console.log(
    `${source}: readers have again what there was before batch ${batch.id}: ${counts.added} came back, ${counts.changed} changed back, ${counts.retired} retired. The next run asks again if the source says the same`,
  );
}
