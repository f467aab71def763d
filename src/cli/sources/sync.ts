import type { Command } from 'commander';
import type { CommandContext } from '../../app/feature.ts';
import type { Environment } from '../../config/source-config.ts';
import { missingRates } from '../../db/quarantine.ts';
import { claimContent } from '../../db/sources.ts';
import { groupReasons } from '../../domain/rejected-rows.ts';
import { whatIsMissing } from '../../domain/run.ts';
import { openTracing } from '../../features/tracing/tracing.ts';
import { SourceError } from '../../sources/source.ts';
import type { Progress, SyncResult } from '../../sync/pipeline.ts';
import { lineWidth } from '../runs/change-rows.ts';
import { CommandFailure, UsageFailure } from '../terminal/failure.ts';
import { type OpenWorker, openWorker } from '../terminal/open-worker.ts';
import { addChange, type Changing } from '../terminal/options.ts';
import { fitted, printAside } from '../terminal/output.ts';
import { missingRateLines, setAside } from '../terminal/source-notes.ts';
import { eachSource, type SourceResult } from './each-source.ts';

export function define(program: Command, { env }: CommandContext): void {
  addChange(program, 'sync', 'sync sources now, one after the other, and publish the changes')
    .argument('<source...>', 'ids of configured sources, e.g. hetzner')
    .action((ids: string[], options) => syncCommand(env(), ids, options));
}

async function syncCommand(env: Environment, sourceIds: readonly string[], options: Changing): Promise<void> {
  await using _tracing = await openTracing(env, 'sync');
  await using worker = await openWorker(env, options);
  await eachSource(env, sourceIds, options, (id) => syncOne(worker, id));
}

async function syncOne(worker: OpenWorker, sourceId: string): Promise<SourceResult> {
  const { config } = worker;
  const source = config.sources.find(({ id }) => id === sourceId);
  if (!source) {
    const known = config.sources.map(({ id }) => id);
    throw new UsageFailure(
      known.length > 0
        ? `there is no source "${sourceId}"; configured sources: ${known.join(', ')}`
        : 'no source is configured; set e.g. HETZNER_URL, CLUSTERS_URL or FLEETBOOK_CONFIG',
    );
  }
  const origin = { cause: 'hand', decider: worker.by } as const;
  await claimContent(worker.store.db, config.content);
  const result = await worker
    .runSource(source, { origin, progress: progressLines(sourceId) })
    // Its message is one or more sentences, which take several lines.
    .catch((error: unknown) => {
      throw error instanceof SourceError ? failureIn([error.message]) : error;
    });
  const { outcome, counts } = result;
  const stores =
    outcome === 'held' ? counts.added + counts.changed > 0 : !['superseded', 'cancelled'].includes(outcome);
  const published = stores && (await worker.publish());
  const missing = (await missingRates(worker.store.db)).get(sourceId) ?? [];
  const reasons = groupReasons(result.rejected);
  const aside = [...setAside(sourceId, result), ...missingRateLines(missing).map((line) => `  ${line}`)];
  const failure = failureOf(sourceId, result);
  return {
    json: { source: sourceId, ...result, reasons, missingRates: missing, published },
    text: fitted([...summaryOf(sourceId, result, published), ...aside], lineWidth()).join('\n'),
    failure: failure && failureIn([...failure, ...aside]),
  };
}

/** Each line on standard error begins with the name of the program. */
const PREFIX = 'fleetbook: '.length;

const failureIn = (lines: readonly string[]) =>
  new CommandFailure(fitted(lines, lineWidth() - PREFIX).join('\n'));

function summaryOf(sourceId: string, result: SyncResult, published: boolean): string[] {
  const missing = whatIsMissing(result);
  const head = `${sourceId}: ${result.outcome}${missing === undefined ? '' : `, with ${missing}`}`;
  const counts = countsOf(result);
  const isOneLine = head.length + 2 + counts.length <= lineWidth();
  return [
    ...(isOneLine ? [`${head}: ${counts}`] : [head, `  ${counts}`]),
    ...(published ? [] : ['  the cache cannot be reached and is updated later']),
  ];
}

function countsOf({ counts }: SyncResult): string {
  const { seen, added, changed, retired, rejected, withdrawn } = counts;
  const taken = withdrawn > 0 ? `, ${withdrawn} withdrawn` : '';
  return `${seen} rows, ${added} new, ${changed} changed, ${retired} retired, ${rejected} rejected${taken}`;
}

/** Returns why readers do not see the whole result of the run; undefined if they do. */
function failureOf(sourceId: string, result: SyncResult): string[] | undefined {
  const { seen, added, changed, rejected } = result.counts;
  switch (result.outcome) {
    case 'held': {
      const rest =
        added + changed > 0
          ? `${added} new and ${changed} changed rows are stored, the rest is held`
          : 'readers keep the previous catalogue';
      return [
        `${sourceId}: held for a decision; ${rest}`,
        ...result.broken.map(({ detail }) => `  ${detail}`),
        `  see: fleetbook hold show ${sourceId}`,
      ];
    }
    case 'superseded':
      return [
        `${sourceId}: a later run replaced this one, or the source was disabled or retired`,
        '  see: fleetbook status',
      ];
    case 'cancelled':
      return [
        `${sourceId}: an operator cancelled the run; nothing is stored`,
        `  see: fleetbook runs ${sourceId}`,
      ];
    default:
      if (seen === 0 || rejected < seen) return undefined;
      return [`${sourceId}: none of its ${seen} rows can be used; readers keep the previous data`];
  }
}

const REPORTED_EVERY = 10_000;

/** Prints a line on standard error every 10,000 rows. */
export function progressLines(label: string): Progress {
  let printed = 0;
  return (seen) => {
    if (seen - printed < REPORTED_EVERY) return;
    printed = seen;
    printAside(`${label}: ${seen} rows so far`);
  };
}
