import { publishNow } from '../../app/actions/publish.ts';
import { openTracing } from '../../app/tracing.ts';
import type { Worker } from '../../app/worker.ts';
import type { Config, Environment } from '../../config/config.ts';
import { missingRates } from '../../db/quarantine.ts';
import { claimContent, lastSeen } from '../../db/sources.ts';
import type { Decider } from '../../domain/operator.ts';
import { groupReasons } from '../../domain/rejected-rows.ts';
import { SourceError } from '../../sources/source.ts';
import type { Progress } from '../../sync/pipeline.ts';
import type { SyncResult } from '../../sync/result.ts';
import { openWorker } from '../open-worker.ts';
import { lineWidth } from '../runs/change-rows.ts';
import { type DeciderOptions, decider } from '../terminal/arguments.ts';
import { CommandFailure, UsageFailure } from '../terminal/failure.ts';
import { missingRateLines, setAside, unreadRegions } from '../terminal/reasons.ts';
import { fitted, shortened } from '../terminal/table.ts';
import { eachSource, type SourceResult } from './each-source.ts';

export async function syncCommand(
  env: Environment,
  sourceIds: readonly string[],
  options: DeciderOptions & { json?: boolean } = {},
): Promise<void> {
  await using _tracing = await openTracing(env, 'sync');
  const { config, worker } = openWorker(env);
  await using _ = worker;
  const by = decider(config, options);
  await eachSource(env, sourceIds, options, (id) => syncOne(config, worker, id, by));
}

async function syncOne(config: Config, worker: Worker, sourceId: string, by: Decider): Promise<SourceResult> {
  const source = config.sources.find(({ id }) => id === sourceId);
  if (!source) {
    const known = config.sources.map(({ id }) => id);
    throw new UsageFailure(
      known.length > 0
        ? `there is no source "${sourceId}"; configured are ${known.join(', ')}`
        : `no source is configured; give e.g. HETZNER_URL, CLUSTERS_URL or FLEETBOOK_CONFIG`,
    );
  }
  const origin = { cause: 'hand', decider: by } as const;
  await claimContent(worker.store.db, config.content);
  const expected = await lastSeen(worker.store.sql, sourceId);
  const bar = progressBar(sourceId, expected, process.stderr);
  const result = await worker
    .runSource(source, { origin, progress: bar.update })
    .finally(bar.end)
    // What is wrong with an upstream is said in sentences.
    .catch((error: unknown) => {
      throw error instanceof SourceError ? failureIn([error.message]) : error;
    });
  const { outcome, counts } = result;
  const stores =
    outcome === 'held' ? counts.added + counts.changed > 0 : !['superseded', 'cancelled'].includes(outcome);
  const published = stores && (await publishNow(worker));
  const missing = (await missingRates(worker.store.sql)).get(sourceId) ?? [];
  const reasons = groupReasons(result.rejected);
  const aside = [...setAside(sourceId, result), ...missingRateLines(missing).map((line) => `  ${line}`)];
  const failure = failureOf(sourceId, result);
  return {
    json: { source: sourceId, ...result, reasons, missingRates: missing, published },
    text: fitted([...summaryOf(sourceId, result, published), ...aside], lineWidth()).join('\n'),
    failure: failure && failureIn([...failure, ...aside]),
  };
}

/** Standard error has the name of the program before each line. */
const PREFIX = 'fleetbook: '.length;

const failureIn = (lines: readonly string[]) =>
  new CommandFailure(fitted(lines, lineWidth() - PREFIX).join('\n'));

function summaryOf(sourceId: string, result: SyncResult, published: boolean): string[] {
  const unread = unreadRegions(result);
  const head = `${sourceId}: ${result.outcome}${unread === undefined ? '' : `, with ${unread}`}`;
  const counts = countsOf(result);
  const isOneLine = head.length + 2 + counts.length <= lineWidth();
  return [
    ...(isOneLine ? [`${head}: ${counts}`] : [head, `  ${counts}`]),
    ...(published ? [] : ['  the cache is away and gets it later']),
  ];
}
function countsOf({ counts }: SyncResult): string {
  const { seen, added, changed, retired, rejected, withdrawn } = counts;
  const taken = withdrawn > 0 ? `, ${withdrawn} withdrawn` : '';
  return `${seen} rows, ${added} new, ${changed} changed, ${retired} retired, ${rejected} rejected${taken}`;
}

/** Why the run is no success: nothing of it, or not all of it, has come to readers. */
function failureOf(sourceId: string, result: SyncResult): string[] | undefined {
  const { seen, added, changed, rejected } = result.counts;
  switch (result.outcome) {
    case 'held': {
      const rest =
        added + changed > 0
          ? `${added} new and ${changed} changed are stored, the rest waits`
          : 'readers keep the last good catalogue';
      return [
        `${sourceId}: held for a decision; ${rest}`,
        ...result.broken.map(({ detail }) => `  ${detail}`),
        `  see: fleetbook hold show ${sourceId}`,
      ];
    }
    case 'superseded':
      return [
        `${sourceId}: another run began meanwhile, which counts, or the source was disabled or retired`,
        '  see: fleetbook status',
      ];
    case 'cancelled':
      return [
        `${sourceId}: an operator has cancelled the run; nothing of it is stored`,
        `  see: fleetbook runs ${sourceId}`,
      ];
    default:
      if (seen === 0 || rejected < seen) return undefined;
      return [`${sourceId}: not one of its ${seen} rows can be used; readers keep what they had`];
  }
}

/** Characters of the bar, and those below which it says nothing. */
const WIDTH = 30;
const SHORTEST = 8;
/** Characters of a terminal that does not say how many it has. */
const COLUMNS = 80;

/**
 * On a terminal a bar that fills towards what the last run saw, in one line however narrow it is; elsewhere a line every
 * ten thousand rows.
 */
export function progressBar(
  label: string,
  expected: number | undefined,
  out: Pick<NodeJS.WriteStream, 'isTTY' | 'write'> & { readonly columns?: number },
): { update: Progress; end: () => void } {
  let told = 0;
  return {
    update(seen) {
      if (out.isTTY) {
        // A line that fills the last column would begin another one.
        out.write(`\r\x1b[K${progressLine(label, seen, expected, (out.columns ?? COLUMNS) - 1)}`);
      } else if (seen - told >= 10_000) {
        told = seen;
        out.write(`${label}: ${seen} rows so far\n`);
      }
    },
    end() {
      if (out.isTTY) out.write('\r\x1b[K');
    },
  };
}

/** The bar gives way first, then the middle of the label. */
function progressLine(label: string, seen: number, expected: number | undefined, width: number): string {
  const share = expected ? Math.min(1, seen / expected) : 0;
  const counted = `${expected ? `${Math.round(share * 100)} % ` : ''}${seen} rows`;
  const room = width - counted.length - 1;
  const wide = expected ? Math.min(WIDTH, room - label.length - 1) : 0;
  if (wide < SHORTEST) return `${shortened(label, Math.max(1, room))} ${counted}`;
  const filled = Math.round(share * wide);
  return `${label} ${'█'.repeat(filled)}${'░'.repeat(wide - filled)} ${counted}`;
}
