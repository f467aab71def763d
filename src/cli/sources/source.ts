/** Which sources there are, and everything about one of them. Both need PostgreSQL alone. */

import { retireSource } from '../../app/actions/source.ts';
import { FEATURE_CONFIG } from '../../app/feature-settings.ts';
import { type ListedSource, listedSources } from '../../app/listed-sources.ts';
import type { Environment } from '../../config/config.ts';
import { readNamedSources } from '../../config/named-sources.ts';
import { sourceSettings } from '../../config/source-settings.ts';
import { type RegionsPage, sourceRegions, storedSources } from '../../db/sources.ts';
import { previewRetirement, type Retirement } from '../../db/sync/retire.ts';
import { originInWords, type SourceSetting } from '../../domain/source-setting.ts';
import { openWorker } from '../open-worker.ts';
import { slotText } from '../status.ts';
import { type DeciderOptions, decider, type PageOptions, pageLimit } from '../terminal/arguments.ts';
import { CommandFailure, UsageFailure } from '../terminal/failure.ts';
import { openDatabase } from '../terminal/open-database.ts';
import { print, printJson, printText } from '../terminal/print.ts';
import {
  age,
  ago,
  alignedLines,
  alignedTable,
  count,
  moreLine,
  shortened,
  wrapped,
} from '../terminal/table.ts';
import { confirm, type Terminal } from '../terminal/terminal.ts';

/** Slots that are told of each source: by the list and by `show`. */
const LISTED_SLOTS = 3;
const SHOWN_SLOTS = 5;
const WIDTH = 80;
/** Characters of a setting's value; `--json` has it whole. */
const VALUE_WIDTH = 48;

export async function sourceListCommand(env: Environment, options: { json?: boolean }): Promise<void> {
  const { sources } = readNamedSources(env, FEATURE_CONFIG.sections);
  await using register = openDatabase(env);
  const now = new Date();
  const listed = listedSources(sources, await storedSources(register.sql), now, LISTED_SLOTS);
  if (options.json) return printJson(listed);
  if (listed.length === 0) print('no source is configured and none ever ran');
  else printText(sourceTable(listed, now, Math.max(WIDTH, process.stdout.columns ?? WIDTH)));
}

const HEAD = ['SOURCE', 'ADAPTER', 'KIND', 'STATE', 'NEXT UTC'];
const SCHEDULE = 'SCHEDULE';
const SHORTEST_ID = 8;
/** Characters that a schedule gets at least; a longer one goes on in the next line. */
const SCHEDULE_WIDTH = 22;

/** A source a row, schedules in words; no line is longer than `width`, as long as an adapter's name leaves room. */
export function sourceTable(sources: readonly ListedSource[], now: Date, width = WIDTH): string {
  const rows = (idWidth: number) => [
    HEAD,
    ...sources.map((source) => [
      shortened(source.id, idWidth),
      source.adapter,
      source.kind,
      source.state,
      slotText(source.nextSlots[0] ?? null, now),
    ]),
  ];
  const longest = Math.max(...sources.map(({ id }) => id.length));
  const full = alignedLines(rows(longest));
  const excess = Math.max(...full.map((line) => line.length)) + 1 + SCHEDULE_WIDTH - width;
  const lines = (excess > 0 ? alignedLines(rows(Math.max(SHORTEST_ID, longest - excess))) : full).map(
    (line) => line.trimEnd(),
  );
  const column = Math.max(...lines.map((line) => line.length)) + 2;
  const schedules = [SCHEDULE, ...sources.map(scheduleOf)];
  return lines
    .map((line, index) => {
      const [first = '', ...more] = wrapped(schedules[index] ?? '', Math.max(SCHEDULE_WIDTH, width - column))
        .trimEnd()
        .split('\n');
      return [`${line.padEnd(column)}${first}`, ...more.map((rest) => ' '.repeat(column) + rest)]
        .map((each) => `${each.trimEnd()}\n`)
        .join('');
    })
    .join('');
}

function scheduleOf({ scheduleInWords: words, watched }: ListedSource): string {
  if (words === null) return '-';
  // The head of the next slot says it.
  return `${watched ? 'watched, and ' : ''}${words.replace(/ UTC$/, '')}`;
}

export async function sourceShowCommand(env: Environment, id: string, options: PageOptions): Promise<void> {
  const limit = pageLimit(options);
  const { settings, sources } = readNamedSources(env, FEATURE_CONFIG.sections);
  await using register = openDatabase(env);
  const { sql } = register;
  const now = new Date();
  const listed = listedSources(sources, await storedSources(sql), now, SHOWN_SLOTS);
  const source = listed.find((each) => each.id === id);
  if (!source) {
    const known = listed.map((each) => each.id).join(', ');
    throw new UsageFailure(
      known
        ? `there is no source "${id}"; known are ${known}`
        : `there is no source "${id}": none is configured; give e.g. HETZNER_URL, CLUSTERS_URL or FLEETBOOK_CONFIG`,
    );
  }
  const named = sources.find((each) => each.id === id);
  const found = named ? sourceSettings(named, settings, env) : [];
  const regions = await sourceRegions(sql, id, limit);
  if (options.json) return printJson({ ...source, regions, settings: found });
  printText(sourceText(source, regions, found, now));
}

const WHAT = { catalogue: 'machines', clusters: 'clusters', rates: 'exchange rates' };

/** Everything about one source. */
export function sourceText(
  source: ListedSource,
  regions: RegionsPage,
  settings: readonly SourceSetting[],
  now: Date,
): string {
  const { id, kind, adapter, schedule, scheduleInWords: words, watched } = source;
  const lines = [
    `${id}: ${WHAT[kind]}, read by the adapter ${adapter}; ${stateOf(source, now)}`,
    `read: ${source.verifiedAt === null ? 'never well' : `last well ${ago(source.verifiedAt, now)}`}; ${
      source.registeredAt === null
        ? 'not known to a worker yet'
        : `known for ${age(source.registeredAt, now)}`
    }`,
  ];
  if (words !== null) {
    const cron = words.startsWith('cron ') ? '' : ` (${schedule})`;
    lines.push(`schedule: ${words}${cron}${watched ? '; changes are also heard of at once' : ''}`);
  }
  if (source.nextSlots.length > 0)
    lines.push(`next slots, UTC: ${source.nextSlots.map((slot) => slotText(slot, now)).join(', ')}`);
  const head = lines.map((line) => wrapped(line, WIDTH)).join('');
  return head + regionsText(regions, now) + settingsText(settings);
}

function stateOf({ state, disabled, retiredAt, id }: ListedSource, now: Date): string {
  const off =
    disabled === null
      ? ''
      : `disabled ${ago(disabled.at, now)} by ${disabled.by}${disabled.reason === null ? '' : ` (${disabled.reason})`}`;
  switch (state) {
    case 'on':
      return 'on';
    case 'disabled':
      return `${off}; to read it again: fleetbook source enable ${id}`;
    case 'not configured':
      return `not configured here, and still published${off && `; ${off}`}; to end that: fleetbook source retire ${id}`;
    case 'retired':
      return `retired ${ago(retiredAt, now)}; nothing of it is published`;
  }
}

function regionsText({ total, rows }: RegionsPage, now: Date): string {
  if (total === 0) return '';
  const table = alignedTable(
    ['REGION', 'READ', 'UNREAD FOR', 'WHY'],
    rows.map(({ code, verifiedAt, unreadSince, reason }) => [
      code,
      verifiedAt === null ? 'never' : ago(verifiedAt, now),
      unreadSince === null ? '-' : age(unreadSince, now),
      reason ?? '',
    ]),
  );
  return `\n${count(total, 'region')}, the oldest first\n${table}${moreLine(rows.length, total)}`;
}

function settingsText(settings: readonly SourceSetting[]): string {
  if (settings.length === 0) return '';
  const isOwn = ({ name, from }: SourceSetting) => !name.startsWith('limits.') || from !== 'default';
  const defaults = settings.filter((setting) => !isOwn(setting)).length;
  const table = alignedTable(
    ['SETTING', 'VALUE', 'FROM'],
    settings
      .filter(isOwn)
      .map((setting) => [setting.name, shortened(setting.value ?? '-', VALUE_WIDTH), originInWords(setting)]),
  );
  const rest = defaults > 0 ? `  … ${count(defaults, 'limit')} of the guards by default; see --json\n` : '';
  return `\n${table}${rest}`;
}

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
  const retired = await retireSource(worker, id, by);
  if (!retired) throw new CommandFailure(`there is no source "${id}" any more`);
  const { gone, published } = retired;
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
