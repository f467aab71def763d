import type { Environment } from '../config/config.ts';
import { previewRetirement, type Retirement, retireSource } from '../db/queries/retire.ts';
import { type DeciderOptions, decider } from './arguments.ts';
import { CommandFailure, UsageFailure } from './failure.ts';
import { openWorker } from './open-worker.ts';
import { publishNow } from './open-writer.ts';
import { print, printJson, printText } from './print.ts';
import { ago, alignedTable, count } from './table.ts';
import { confirm, type Terminal } from './terminal.ts';

export interface RetireOptions extends DeciderOptions {
  readonly yes?: boolean;
  readonly json?: boolean;
}

/** Shows what would go of a source that is not configured any more, asks, and takes it out of publication. */
export async function retireSourceCommand(
  env: Environment,
  id: string,
  options: RetireOptions,
): Promise<void> {
  const { config, worker } = openWorker(env);
  await using _ = worker;
  const { db, sql } = worker.store;
  const by = decider(config, options);
  const preview = await previewRetirement(db, id);
  if (!preview) {
    const known = await sql<{ id: string }[]>`select id from sources order by id collate "C"`;
    throw new UsageFailure(
      `there is no source "${id}"; stored are ${known.map((each) => each.id).join(', ') || 'none'}`,
    );
  }
  if (config.sources.some((source) => source.id === id)) {
    throw new UsageFailure(
      `source "${id}" is configured: its next run would bring everything back; take it out of the configuration first, of the workers too, and restart them`,
    );
  }
  if (isRetired(preview)) {
    if (options.json) return printJson({ source: id, retired: true, ...shown(preview) });
    print(`${id}: nothing of it is published; it was retired ${ago(preview.retiredAt, new Date())}`);
    return;
  }
  if (!options.yes) {
    if (options.json) printJson({ source: id, retired: false, ...shown(preview) });
    else printText(previewText(preview, new Date()));
    await confirmRetirement(id, process.stdin, process.stderr);
  }
  const gone = await retireSource(worker.store, id, new Date().toISOString(), by);
  if (!gone) throw new CommandFailure(`there is no source "${id}" any more`);
  const published = await publishNow(worker);
  if (options.json) return printJson({ source: id, retired: true, ...shown(gone), published });
  print(
    `${id}: retired: ${whatGoes(gone)} out of publication; the history stays${published ? '' : '; the cache is away and gets it later'}`,
  );
}

const isRetired = ({ retiredAt, places, rates }: Retirement) =>
  retiredAt !== null && places.length === 0 && rates === 0;

const shown = ({ kind, verifiedAt, lastRunAt, places, rates }: Retirement) => ({
  kind,
  verifiedAt,
  lastRunAt,
  places,
  rates,
});

function whatGoes({ kind, places, rates }: Retirement): string {
  if (kind === 'rates') return count(rates, 'exchange rate');
  const published = places.reduce((sum, place) => sum + place.published, 0);
  return kind === 'catalogue'
    ? `${count(published, 'machine')} in ${count(places.length, 'region')}`
    : `${count(published, 'cluster')} of ${count(places.length, 'organization')}`;
}

/** What would go, place by place, and what an operator should know before. */
export function previewText(retirement: Retirement, now: Date): string {
  const { id, kind, verifiedAt, lastRunAt, places } = retirement;
  const read = verifiedAt === null ? 'never read well' : `last read well ${ago(verifiedAt, now)}`;
  const ran = lastRunAt === null ? 'it never ran' : `its last run began ${ago(lastRunAt, now)}`;
  const head = kind === 'clusters' ? ['ORGANIZATION', 'CLUSTERS'] : ['REGION', 'MACHINES', 'PUBLISHED'];
  const rows = places.map(({ place, known, published }) => [
    place,
    String(known),
    ...(kind === 'clusters' ? [] : [String(published)]),
  ]);
  return [
    `${id}: ${whatGoes(retirement)} would go out of publication (${read}, ${ran})\n`,
    ...(rows.length > 0 ? ['\n', alignedTable(head, rows)] : []),
    ...(kind === 'rates'
      ? ['prices stay as they are; new ones in other currencies need CATALOGUE_RATES\n']
      : []),
    '\nIds, prices and their history stay: what a later run of the source lists again comes back under its id.\n',
    'A worker that still has it configured brings it back with its next run.\n',
  ].join('');
}

/** @throws UsageFailure where nobody can be asked, and CommandFailure for another answer than yes */
export async function confirmRetirement(
  id: string,
  input: Terminal,
  output: NodeJS.WritableStream,
): Promise<void> {
  if (!input.isTTY) {
    throw new UsageFailure(
      `nothing is retired yet, and there is no terminal to ask at; say so: fleetbook source retire ${id} --yes`,
    );
  }
  await confirm('Take this out of publication?', 'nothing was retired', input, output);
}
