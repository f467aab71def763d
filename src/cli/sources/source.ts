import type { Command } from 'commander';
import { retireSource } from '../../app/actions/source.ts';
import type { CommandContext } from '../../app/feature.ts';
import { FEATURE_CONFIG } from '../../app/feature-config.ts';
import { type ListedSource, listedSources } from '../../app/listed-sources.ts';
import { readNamedSources } from '../../config/named-sources.ts';
import type { Environment } from '../../config/source-config.ts';
import { sourceSettings } from '../../config/source-settings.ts';
import { type RegionsPage, sourceRegions, storedSources } from '../../db/sources.ts';
import { COUNTED, originInWords, type SourceSetting } from '../../domain/source.ts';
import { previewRetirement, type Retirement } from '../../sync/runs/retire-source.ts';
import { CommandFailure, UsageFailure } from '../terminal/failure.ts';
import { openDatabase } from '../terminal/open.ts';
import { openWorker } from '../terminal/open-worker.ts';
import {
  add,
  addRows,
  type Deciding,
  type Json,
  type PageOptions,
  pageLimit,
  REASON,
  SOURCE,
  withDecider,
  YES,
} from '../terminal/options.ts';
import { age, ago, alignedTable, count, moreLine, show, updatedLater, wrapped } from '../terminal/output.ts';
import { disabledBy, slotText } from '../terminal/source-notes.ts';
import { confirm, type Terminal } from '../terminal/terminal.ts';
import { defineSwitches, storedIds } from './source-switch.ts';

const LISTED_SLOTS = 3;
const SHOWN_SLOTS = 5;
const WIDTH = 80;

export function define(program: Command, { env }: CommandContext): void {
  const source = program.command('source').description('sources: their state and settings');
  add(source, 'list', 'show every source: adapter, state, schedule in words, next slot').action((options) =>
    sourceListCommand(env(), options),
  );
  addRows(
    source,
    'show',
    'show one source: next slots, freshness of each region, origin of each setting',
    'regions',
  )
    .argument(...SOURCE)
    .action((id: string, page: PageOptions) => sourceShowCommand(env(), id, page));
  defineSwitches(source, env);
  withDecider(
    source
      .command('retire')
      .description('show the published data of a source that is no longer configured, and unpublish it')
      .argument('<source>', 'id of a source that is not configured')
      .option(...YES)
      .option(...REASON),
  )
    .option('--json', 'print JSON; without --yes, only what would be unpublished')
    .action((id: string, options) => retireSourceCommand(env(), id, options));
}

export async function sourceListCommand(env: Environment, options: Json): Promise<void> {
  const { sources } = readNamedSources(env, FEATURE_CONFIG.sections);
  await using database = openDatabase(env);
  const now = new Date();
  const listed = listedSources(sources, await storedSources(database.db), now, LISTED_SLOTS);
  show(options, listed, () =>
    listed.length === 0
      ? 'no source is configured, and none has ever run'
      : sourceTable(listed, now, Math.max(WIDTH, process.stdout.columns ?? WIDTH)),
  );
}

export function sourceTable(sources: readonly ListedSource[], now: Date, width = WIDTH): string {
  const rows = sources.map((source) => [
    source.id,
    source.adapter,
    source.kind,
    source.state,
    slotText(source.nextSlots[0] ?? null, now),
    scheduleOf(source),
  ]);
  return alignedTable(['SOURCE', 'ADAPTER', 'KIND', 'STATE', 'NEXT UTC', 'SCHEDULE'], rows, width);
}

function scheduleOf({ scheduleInWords: words, watched }: ListedSource): string {
  if (words === null) return '-';
  // The head of another column says UTC.
  return `${watched ? 'watched, and ' : ''}${words.replace(/ UTC$/, '')}`;
}

export async function sourceShowCommand(env: Environment, id: string, options: PageOptions): Promise<void> {
  const limit = pageLimit(options);
  const { settings, sources } = readNamedSources(env, FEATURE_CONFIG.sections);
  await using database = openDatabase(env);
  const { db } = database;
  const now = new Date();
  const listed = listedSources(sources, await storedSources(db), now, SHOWN_SLOTS);
  const source = listed.find((each) => each.id === id);
  if (!source) {
    const known = listed.map((each) => each.id).join(', ');
    throw new UsageFailure(
      known
        ? `there is no source "${id}"; known sources: ${known}`
        : `there is no source "${id}": none is configured; set e.g. HETZNER_URL, CLUSTERS_URL or FLEETBOOK_CONFIG`,
    );
  }
  const named = sources.find((each) => each.id === id);
  const found = named ? sourceSettings(named, settings, env) : [];
  const regions = await sourceRegions(db, id, limit);
  show(options, { ...source, regions, settings: found }, () => sourceText(source, regions, found, now));
}

function sourceText(
  source: ListedSource,
  regions: RegionsPage,
  settings: readonly SourceSetting[],
  now: Date,
): string {
  const { id, kind, adapter, schedule, scheduleInWords: words, watched } = source;
  const lines = [
    `${id}: ${COUNTED[kind]}, read by the adapter ${adapter}; ${stateOf(source, now)}`,
    `read: ${source.verifiedAt === null ? 'never successfully' : `last successfully ${ago(source.verifiedAt, now)}`}; ${
      source.registeredAt === null
        ? 'not registered by a worker yet'
        : `registered ${ago(source.registeredAt, now)}`
    }`,
  ];
  if (words !== null) {
    const cron = words.startsWith('cron ') ? '' : ` (${schedule})`;
    lines.push(`schedule: ${words}${cron}${watched ? '; a watch reports changes at once' : ''}`);
  }
  if (source.nextSlots.length > 0)
    lines.push(`next slots, UTC: ${source.nextSlots.map((slot) => slotText(slot, now)).join(', ')}`);
  const head = lines.map((line) => wrapped(line, WIDTH)).join('');
  return head + regionsText(regions, now) + settingsText(settings);
}

function stateOf({ state, disabled, retiredAt, id }: ListedSource, now: Date): string {
  const off = disabled === null ? '' : `disabled ${disabledBy(disabled, now)}`;
  switch (state) {
    case 'on':
      return 'on';
    case 'disabled':
      return `${off}; to read it again: fleetbook source enable ${id}`;
    case 'not configured':
      return `not configured here, and still published${off && `; ${off}`}; to unpublish its data: fleetbook source retire ${id}`;
    case 'retired':
      return `retired ${ago(retiredAt, now)}; none of its data is published`;
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
  return `\n${count(total, 'region')}, oldest first\n${table}${moreLine(rows.length, total)}`;
}

function settingsText(settings: readonly SourceSetting[]): string {
  if (settings.length === 0) return '';
  const isOwn = ({ name, from }: SourceSetting) => !name.startsWith('limits.') || from !== 'default';
  const defaults = settings.filter((setting) => !isOwn(setting)).length;
  const table = alignedTable(
    ['SETTING', 'VALUE', 'FROM'],
    settings.filter(isOwn).map((setting) => [setting.name, setting.value ?? '-', originInWords(setting)]),
  );
  const rest = defaults > 0 ? `  … ${count(defaults, 'limit')} of guards have the default; see --json\n` : '';
  return `\n${table}${rest}`;
}

async function retireSourceCommand(env: Environment, id: string, options: Deciding): Promise<void> {
  await using worker = await openWorker(env, options);
  const { config, store } = worker;
  const preview = await previewRetirement(store.db, id);
  if (!preview) {
    const known = await storedIds(store.db);
    throw new UsageFailure(`there is no source "${id}"; stored sources: ${known.join(', ') || 'none'}`);
  }
  if (config.sources.some((source) => source.id === id)) {
    throw new UsageFailure(
      `source "${id}" is configured, so its next run would publish its data again; remove it from the configuration of all workers, restart them, and run this command again`,
    );
  }
  const now = new Date();
  if (isRetired(preview)) {
    return show(
      options,
      { source: id, retired: true, ...shown(preview) },
      () => `${id}: none of its data is published; it was retired ${ago(preview.retiredAt, now)}`,
    );
  }
  if (!options.yes) {
    show(options, { source: id, retired: false, ...shown(preview) }, () => previewText(preview, now));
    await confirmRetirement(id);
  }
  const retired = await retireSource(worker, id, worker.by);
  if (!retired) throw new CommandFailure(`there is no source "${id}"`);
  const { gone, published } = retired;
  show(
    options,
    { source: id, retired: true, ...shown(gone), published },
    () => `${id}: retired: ${amountOf(gone)} unpublished; the history stays${updatedLater(published)}`,
  );
}

const isRetired = ({ retiredAt, places, rates }: Retirement) =>
  retiredAt !== null && places.length === 0 && rates === 0;

const shown = ({ kind, counted, verifiedAt, lastRunAt, places, rates }: Retirement) => ({
  kind,
  counted,
  verifiedAt,
  lastRunAt,
  places,
  rates,
});

function amountOf({ kind, counted, places, rates }: Retirement): string {
  if (kind === 'rates') return count(rates, 'exchange rate');
  const published = places.reduce((sum, place) => sum + place.published, 0);
  if (kind === 'lifecycles')
    return `${count(published, 'release cycle')} of ${count(places.length, 'engine')}`;
  return kind === 'catalogue'
    ? `${count(published, counted === 'machines' ? 'machine' : 'database plan')} in ${count(places.length, 'region')}`
    : `${count(published, 'cluster')} of ${count(places.length, 'organization')}`;
}

function previewText(retirement: Retirement, now: Date): string {
  const { id, kind, counted, verifiedAt, lastRunAt, places } = retirement;
  const read =
    verifiedAt === null ? 'never read successfully' : `last read successfully ${ago(verifiedAt, now)}`;
  const ran = lastRunAt === null ? 'it has never run' : `its last run began ${ago(lastRunAt, now)}`;
  const isPlaced = kind === 'catalogue' || kind === 'rates';
  const owner = kind === 'lifecycles' ? 'ENGINE' : 'ORGANIZATION';
  const head = isPlaced ? ['REGION', counted.toUpperCase(), 'PUBLISHED'] : [owner, counted.toUpperCase()];
  const rows = places.map(({ place, known, published }) => [
    place,
    String(known),
    ...(isPlaced ? [String(published)] : []),
  ]);
  return [
    `${id}: ${amountOf(retirement)} would be unpublished (${read}, ${ran})\n`,
    ...(rows.length > 0 ? ['\n', alignedTable(head, rows)] : []),
    ...(kind === 'rates'
      ? ['stored prices do not change; new prices in other currencies need CATALOGUE_RATES\n']
      : []),
    '\nIds, prices and their history stay: machines and clusters that a later run lists get their ids again.\n',
    'If a worker still has this source configured, its next run publishes the data again.\n',
  ].join('');
}

/** @throws UsageFailure without a terminal; CommandFailure for another answer than yes */
export async function confirmRetirement(
  id: string,
  input: Terminal = process.stdin,
  output?: NodeJS.WritableStream,
): Promise<void> {
  if (!input.isTTY) {
    throw new UsageFailure(
      `nothing was retired, because there is no terminal to confirm; confirm with: fleetbook source retire ${id} --yes`,
    );
  }
  await confirm('Unpublish this?', 'nothing was retired', input, output);
}
