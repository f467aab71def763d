import type { WriteTier } from '../compose-write.ts';
import type { Config, Environment, SourceConfig } from '../config.ts';
import { approveHeld, previewHeld } from '../run-source.ts';
import type { PreviewRow } from '../store/catalogue-diff.ts';
import { decide, type HeldBatch, pendingBatches } from '../store/held.ts';
import { CommandFailure, UsageFailure } from './failure.ts';
import { printJson } from './table.ts';
import { openWriteTier, publishNow } from './write-tier.ts';

/** Rows of each kind of change that `hold show` prints. */
const SHOWN = 20;

export async function holdList(env: Environment, options: { json?: boolean }): Promise<void> {
  const { tier } = openWriteTier(env);
  await using _ = tier;
  const batches = await pendingBatches(tier.store.sql);
  if (options.json) {
    printJson(batches);
    return;
  }
  if (batches.length === 0) console.log('nothing is held');
  for (const batch of batches) console.log(headline(batch));
}

export async function holdShow(env: Environment, source: string, options: { json?: boolean }): Promise<void> {
  const { config, tier } = openWriteTier(env);
  await using _ = tier;
  const batch = await pendingBatch(tier, source);
  const preview = await previewHeld(config, tier.store, configured(config, source), batch.id, SHOWN);
  if (options.json) {
    printJson({ ...batch, ...preview });
    return;
  }
  console.log(headline(batch));
  if (!preview) return;
  const { known, added, changed, repriced, missing } = preview.diff;
  console.log(`${known} known: ${missing} gone, ${changed} changed (${repriced} in price), ${added} new\n`);
  process.stdout.write(previewTable(preview.rows));
  console.log(`\nfleetbook hold approve ${source}   stores it\nfleetbook hold reject ${source}    drops it`);
}

export async function holdDecide(
  env: Environment,
  source: string,
  decision: 'approve' | 'reject',
  options: { json?: boolean } = {},
): Promise<void> {
  const { config, tier } = openWriteTier(env);
  await using _ = tier;
  const batch = await pendingBatch(tier, source);
  if (decision === 'reject') {
    if (!(await decide(tier.store.sql, batch.id, 'rejected'))) throw overtaken(source);
    if (options.json) return printJson({ source, batch: batch.id, decision: 'rejected' });
    console.log(`${source}: batch ${batch.id} is rejected; readers keep the last good catalogue`);
    return;
  }
  const result = await approveHeld(config, tier.store, configured(config, source), batch.id);
  if (result.outcome === 'superseded') throw overtaken(source);
  const { added, changed, retired } = result.counts;
  const published = await publishNow(tier);
  if (options.json) {
    return printJson({ source, batch: batch.id, decision: 'approved', counts: result.counts, published });
  }
  console.log(
    `${source}: batch ${batch.id} is stored: ${added} new, ${changed} changed, ${retired} retired${published ? '' : '; the cache is away and gets it later'}`,
  );
}

const overtaken = (source: string) =>
  new CommandFailure(
    `${source}: nothing is decided: a run began meanwhile, or somebody else has decided; look at \`fleetbook hold list\` again`,
  );

async function pendingBatch(tier: WriteTier, source: string): Promise<HeldBatch> {
  const batches = await pendingBatches(tier.store.sql);
  const batch = batches.find(({ sourceId }) => sourceId === source);
  if (batch) return batch;
  const others = batches.map(({ sourceId }) => sourceId);
  throw new UsageFailure(
    `nothing of "${source}" is held${others.length > 0 ? `; held are ${others.join(', ')}` : ''}`,
  );
}

/** The source's configuration says how its batch is to be read. */
function configured(config: Config, id: string): SourceConfig {
  const source = config.sources.find((candidate) => candidate.id === id);
  if (source) return source;
  throw new UsageFailure(
    `source "${id}" is not configured here; give its settings, e.g. as the worker has them`,
  );
}

function headline(batch: HeldBatch): string {
  const why = batch.broken.map(({ detail }) => detail).join('; ');
  return `${batch.sourceId}: batch ${batch.id} of ${batch.createdAt}, ${batch.items} rows: ${why}`;
}

const SIGNS: Record<PreviewRow['change'], string> = {
  gone: '-',
  excluded: '-',
  price: '~',
  shape: '~',
  published: '+',
  new: '+',
};

/** One line a machine: what happens to it, and its price before and after. */
export function previewTable(rows: readonly PreviewRow[]): string {
  const cells = rows.map((row) => [
    `${SIGNS[row.change]} ${row.change}`,
    `${row.name} @ ${row.regionCode}`,
    priceChange(row),
    row.detail,
  ]);
  const widths = [0, 1, 2].map((column) => Math.max(0, ...cells.map((row) => row[column]?.length ?? 0)));
  return cells
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

function priceChange({ oldPrice, newPrice }: PreviewRow): string {
  if (oldPrice === null || newPrice === null || oldPrice === newPrice) return hourly(newPrice ?? oldPrice);
  const factor = oldPrice > 0 ? ` (× ${(newPrice / oldPrice).toPrecision(3)})` : '';
  return `${hourly(oldPrice)} → ${hourly(newPrice)}${factor}`;
}

/** Per hour, which is how people know prices. */
function hourly(perMinute: number | null): string {
  return perMinute === null ? '' : `${Number((perMinute * 60).toPrecision(5))}/h`;
}
