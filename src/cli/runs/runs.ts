import type { Command } from 'commander';
import type { CommandContext } from '../../app/feature.ts';
import type { Environment } from '../../config/config.ts';
import type { Database } from '../../db/connection/client.ts';
import { sourceKind } from '../../db/sources.ts';
import { type Caused, causeInWords, type Naming, type RunRequests } from '../../domain/run.ts';
import { bytesInWords, msInWords } from '../../domain/text/quantities.ts';
import { isKept, type RunDiff, unshown } from '../../features/console/queries/changes.ts';
import { type RunRecord, runRecord, runRequests, sourceRuns } from '../../features/console/queries/runs.ts';
import { knownSource } from '../sources/rejected.ts';
import { CommandFailure } from '../terminal/failure.ts';
import { openDatabase } from '../terminal/open.ts';
import { addRows, type PageOptions, pageLimit, readId, SOURCE } from '../terminal/options.ts';
import { age, alignedLines, alignedTable, count, moreLine, show, wrapped } from '../terminal/output.ts';
import { reasonLines } from '../terminal/source-notes.ts';
import { clusterLines, clusterPages, lineWidth, machineLines, machinePages } from './change-rows.ts';

export function define(program: Command, { env }: CommandContext): void {
  addRows(program, 'runs', 'show the runs of a source, newest first')
    .argument(...SOURCE)
    .action((id: string, page: PageOptions) => runsCommand(env(), id, page));
  addRows(
    program,
    'run',
    'show the changes of one run, before and after, and its requests to the upstream',
    'rows of each kind',
  )
    .argument('<run>', 'number that `runs` shows')
    .action((id: string, page: PageOptions) => runCommand(env(), id, page));
}

export async function runsCommand(env: Environment, sourceId: string, options: PageOptions): Promise<void> {
  const limit = pageLimit(options);
  await using database = openDatabase(env);
  const { db } = database;
  knownSource(sourceId, await sourceKind(db, sourceId));
  const page = await sourceRuns(db, sourceId, { limit });
  show(options, { source: sourceId, ...page }, () =>
    page.total === 0
      ? `${sourceId}: no run is stored`
      : runTable(page.rows, new Date(), lineWidth()) + moreLine(page.rows.length, page.total),
  );
}

const RUN_HEAD = ['RUN', 'AGO', 'OUTCOME', 'SEEN', 'NEW', 'CHANGED', 'RETIRED', 'REJECTED'] as const;

function runTable(runs: readonly RunRecord[], now: Date, width: number): string {
  const number = (value: number | null) => (value === null ? '-' : String(value));
  const rows = runs.map((run) => [
    String(run.id),
    age(run.startedAt, now),
    run.outcome,
    ...[run.seen, run.added, run.changed, run.retired, run.rejected].map(number),
  ]);
  const notes = runs.flatMap((run) =>
    [...handNote(run), ...notesOf(run)].map((note) => wrapped(`${run.id}: ${note}`, width)),
  );
  return alignedTable(RUN_HEAD, rows) + (notes.length > 0 ? `\n${notes.join('')}` : '');
}

const handNote = (run: Caused): string[] => (run.cause === 'hand' ? [causeInWords(run)] : []);

function notesOf({ error, decision, heldBatch }: RunRecord): string[] {
  const notes: string[] = [];
  if (decision !== null) {
    const { kind, batch, by, reason } = decision;
    const what =
      kind === 'approve' ? `stored the approved batch ${batch}` : `undid the approval of batch ${batch}`;
    notes.push(`${what}${by === null ? '' : ` by ${by}`}${reason === null ? '' : `: ${reason}`}`);
  }
  if (error !== null) notes.push(`${error}${heldBatch === null ? '' : `; see batch ${heldBatch}`}`);
  return notes;
}

export async function runCommand(env: Environment, text: string, options: PageOptions): Promise<void> {
  const limit = pageLimit(options);
  const id = readId(text, 'run number', '`fleetbook runs <source>` shows');
  await using database = openDatabase(env);
  const { db } = database;
  const run = await runRecord(db, id);
  if (run === undefined) {
    throw new CommandFailure(`there is no run ${id}, or it is deleted; see: fleetbook runs <source>`);
  }
  const diff = await diffOf(db, run, limit);
  const requests = await runRequests(db, id);
  show(options, { ...runJson(run, diff), requests }, () => {
    const text = runText(run, diff, lineWidth());
    return requests === null ? text : `${text}\n${requestsText(requests, limit, lineWidth())}`;
  });
}

export function runJson(run: RunRecord, diff: RunDiff) {
  const { of: _, ...changes } = diff;
  return { ...run, isKept: isKept(run), unshown: unshown(run, diff), ...changes };
}

export async function diffOf(
  db: Database,
  { kind, id: runId }: RunRecord,
  limit: number | undefined,
): Promise<RunDiff> {
  if (kind === 'catalogue') return { of: 'machines', ...(await machinePages(db, { runId }, limit)) };
  if (kind === 'clusters') return { of: 'clusters', ...(await clusterPages(db, { runId }, limit)) };
  return { of: kind };
}

function runText(run: RunRecord, diff: RunDiff, width: number): string {
  const { id, sourceId, outcome, startedAt, finishedAt, slot, namings } = run;
  const took =
    finishedAt === null ? '' : `, took ${(Date.parse(finishedAt) - Date.parse(startedAt)) / 1000} s`;
  const why = causeInWords(run);
  const cause = slot === null ? why && `, ${why}` : `, for the slot ${slot}`;
  const head = [
    `run ${id} of ${sourceId}: ${outcome}, began ${startedAt}${took}${cause}`,
    ...(run.seen === null ? [] : [countsOf(run)]),
    ...notesOf(run),
    ...reasonLines(run.reasons),
    ...namings.map(namingOf),
  ];
  const lines = diffLines(run, diff, width);
  return head.map((line) => wrapped(line, width)).join('') + (lines === '' ? '' : `\n${lines}`);
}

function countsOf({ seen, added, changed, retired, rejected, withdrawn }: RunRecord): string {
  const taken = withdrawn ? `, ${withdrawn} withdrawn` : '';
  return `${count(seen ?? 0, 'row')}, ${added} new, ${changed} changed, ${retired} retired, ${rejected} rejected${taken}`;
}

function namingOf({ region, before, after }: Naming): string {
  const what = region === null ? 'provider' : `region ${region}`;
  return before === null ? `new ${what}: ${after}` : `${what} has another name: ${before} → ${after}`;
}

/** Returns the units of each currency for one euro, before and after. */
function rateLines({ rates }: RunRecord): string {
  const rows = rates.map(({ currency, before, after }) =>
    before === null
      ? [`+ ${currency}`, `${after} for 1 EUR`]
      : [`~ ${currency}`, `${before} → ${after} for 1 EUR`],
  );
  return alignedLines(rows).join('');
}

export function diffLines(run: RunRecord, diff: RunDiff, width: number): string {
  if (!isKept(run)) {
    return wrapped(
      'its changes are not stored, or are deleted; CHANGES_KEPT sets how many days they are stored',
      width,
    );
  }
  if (diff.of === 'rates') return rateLines(run);
  if (diff.of === 'lifecycles') return '';
  const rest = unshown(run, diff);
  const more =
    rest === 0 ? '' : wrapped(`  and ${rest} changed only because an exchange rate changed`, width);
  return (diff.of === 'machines' ? machineLines(diff, width) : clusterLines(diff, width)) + more;
}

const REQUEST_HEAD = ['REQUEST', 'STATUS', 'SIZE', 'DURATION', 'ATTEMPTS', 'ADDRESS'] as const;

/** Returns the HTTP requests of a run: sums, stored requests and errors. @param limit rows; undefined for all */
function requestsText(requests: RunRequests, limit: number | undefined, width: number): string {
  const { total, attempts, failed, bytes, ms, kept } = requests;
  const shown = kept.slice(0, limit);
  const rows = shown.map((request) => [
    String(request.n),
    request.status === null ? '-' : String(request.status),
    bytesInWords(request.bytes),
    msInWords(request.ms),
    String(request.attempts),
    request.address,
  ]);
  const head = `${count(total, 'request')}: ${bytesInWords(bytes)} decompressed, ${msInWords(ms)} in total, ${attempts - total} retries, ${failed} failed`;
  const errors = shown.flatMap(({ n, error }) => (error === null ? [] : [wrapped(`${n}: ${error}`, width)]));
  const uncounted =
    kept.length < total
      ? wrapped(
          `  ${total - kept.length} more are not stored: only the first, slow and failed requests are`,
          width,
        )
      : '';
  return [
    wrapped(head, width),
    alignedTable(REQUEST_HEAD, rows),
    moreLine(shown.length, kept.length, 'requests'),
    uncounted,
    ...errors,
  ].join('');
}
