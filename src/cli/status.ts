import type { Command } from 'commander';
import { FEATURE_CONFIG, openAlerts } from '../app/features.ts';
import { type NamedSource, pricedSource, readNamedSources } from '../config/named-sources.ts';
import { databaseUrl } from '../config/settings.ts';
import type { Environment } from '../config/source-config.ts';
import type { Sql } from '../db/connection/client.ts';
import { postgresProblem } from '../db/connection/server-problem.ts';
import { areRatesNeeded } from '../db/prices/currency.ts';
import { missingRates } from '../db/quarantine.ts';
import { type SourceStatus, sourceStatus } from '../db/sources.ts';
import { type AcknowledgedAlert, acknowledgementText } from '../domain/alert.ts';
import type { PricedSource } from '../domain/prices/exchange-rates.ts';
import { nextSlot } from '../domain/schedule.ts';
import { COUNTED } from '../domain/source.ts';
import { UsageFailure } from './terminal/failure.ts';
import { liveView } from './terminal/live-view.ts';
import { openDatabase } from './terminal/open-database.ts';
import { add, type Env, type Json } from './terminal/options.ts';
import { age, count, idTable, show, wrapped } from './terminal/output.ts';
import {
  disabledNote,
  missingRateLines,
  notConfigured,
  pausedNote,
  slotText,
} from './terminal/source-notes.ts';
import { stopSignal } from './terminal/terminal.ts';

interface ShownStatus extends Omit<SourceStatus, 'registeredAt'> {
  /** RFC 3339; null until a run or a worker registers it. */
  readonly registeredAt: string | null;
  readonly configured: boolean;
  /** RFC 3339; null for a source that is disabled, or not configured here. */
  readonly nextSlot: string | null;
  /** False for exchange rates that no price needs: an operator can ignore their failures. */
  readonly needed: boolean;
  /** Currencies without an exchange rate: machines with such prices are not published. */
  readonly missingRates: readonly string[];
  /** Open alerts about it that an operator has acknowledged. */
  readonly acknowledgedAlerts: readonly Omit<AcknowledgedAlert, 'source'>[];
}

const WIDTH = 80;

const WATCH_EVERY_MS = 2000;

export function define(program: Command, env: Env): void {
  add(program, 'status', 'show every source: last run, last success, next slot, counts, held batches')
    .option('--watch', 'update every two seconds, until q is pressed')
    .action((options) => statusCommand(env(), options));
}

/** @throws UsageFailure for `--watch` without a terminal or with `--json` */
export async function statusCommand(env: Environment, options: Json & { watch?: boolean }): Promise<void> {
  const { settings, sources } = readNamedSources(env, FEATURE_CONFIG.sections);
  const configured = sources.map((source) => ({ ...source, ...pricedSource(source, settings) }));
  if (options.watch && (options.json || !process.stdout.isTTY))
    throw new UsageFailure(
      '--watch needs a terminal; without it, the status is printed once, as a table or with --json',
    );
  await using database = openDatabase(env);
  const width = () => {
    const columns = process.stdout.columns || WIDTH;
    // With --watch a wrapped line would move the head out of a small terminal.
    return options.watch ? columns : Math.max(WIDTH, columns);
  };
  const text = (shown: readonly ShownStatus[], now: Date) =>
    shown.length === 0
      ? 'no source is configured, and none has ever run\n'
      : statusTable(shown, now, width());
  if (!options.watch) {
    const now = new Date();
    const shown = await readStatus(database.sql, configured, now);
    return show(options, shown, () => text(shown, now));
  }
  const draw = async () => {
    const now = new Date();
    return text(await readStatus(database.sql, configured, now), now);
  };
  const { stdin: input, stdout: output } = process;
  const url = databaseUrl(database);
  const problemOf = (error: unknown) => postgresProblem(error, { setting: 'DATABASE_URL', url });
  await liveView({ draw, problemOf, input, output, everyMs: WATCH_EVERY_MS, stop: stopSignal() });
}

async function readStatus(
  sql: Sql,
  sources: readonly (PricedSource & Pick<NamedSource, 'schedule'>)[],
  now: Date,
): Promise<ShownStatus[]> {
  const statuses = await sourceStatus(sql);
  const isRateNeeded = await areRatesNeeded(sql, sources, statuses);
  const stored = new Map(statuses.map((status) => [status.id, status]));
  const missing = await missingRates(sql);
  const acknowledged = Map.groupBy((await openAlerts?.acknowledged(sql)) ?? [], ({ source }) => source);
  const moreOf = ({ id, kind }: Pick<SourceStatus, 'id' | 'kind'>) => ({
    needed: kind !== 'rates' || isRateNeeded,
    missingRates: missing.get(id) ?? [],
    acknowledgedAlerts: (acknowledged.get(id) ?? []).map(({ source: _, ...alert }) => alert),
  });
  const shown = sources.map((source): ShownStatus => {
    const { id, kind } = source;
    const never = { ...NEVER_RAN, counted: COUNTED[kind] };
    const status = { id, kind, ...(stored.get(id) ?? never), ...moreOf(source) };
    return { ...status, configured: true, nextSlot: status.disabled ? null : nextSlot(source.schedule, now) };
  });
  for (const status of stored.values()) {
    if (!shown.some(({ id }) => id === status.id))
      shown.push({ ...status, ...moreOf(status), configured: false, nextSlot: null });
  }
  return shown;
}

/** The state of a source that no run and no worker has registered. */
const NEVER_RAN = {
  lastRun: null,
  lastEnded: null,
  verifiedAt: null,
  registeredAt: null,
  retiredAt: null,
  disabled: null,
  paused: null,
  regions: [],
  known: 0,
  published: 0,
  quarantined: 0,
  held: 0,
};

const HEAD = ['SOURCE', 'LAST RUN', 'OUTCOME', 'LAST GOOD', 'NEXT UTC', 'KNOWN', 'PUBLISHED'] as const;
const SHORTEST_ID = 12;

/** Returns a row for each source, and notes below the table. No line is longer than `width`. */
export function statusTable(sources: readonly ShownStatus[], now: Date, width = WIDTH): string {
  const rows = sources.map((source) => [
    source.id,
    age(source.lastRun?.startedAt, now),
    source.needed ? (source.lastRun?.outcome ?? 'never ran') : 'not needed',
    age(source.verifiedAt, now),
    source.disabled ? 'disabled' : slotText(source.nextSlot, now),
    String(source.known),
    String(source.published),
  ]);
  const notes = sources.flatMap((source) => notesOf(source, now)).map((note) => wrapped(note, width));
  const table = idTable(HEAD, rows, width, SHORTEST_ID);
  return notes.length > 0 ? `${table}\n${notes.join('')}` : table;
}

/** Returns notes for an operator: the last error, also during a new attempt, and what needs a decision. */
function notesOf(source: ShownStatus, now: Date): string[] {
  const { id, lastRun, lastEnded, held, quarantined } = source;
  const notes: string[] = [];
  if (!source.needed) notes.push(`${id}: cannot be read; no price needs its rates`);
  else if (lastRun?.error) notes.push(`${id}: ${lastRun.error}`);
  else if (lastRun?.outcome === 'running' && lastEnded?.error)
    notes.push(
      `${id}: runs again; ${age(lastEnded.finishedAt, now)} ago it ended with ${lastEnded.outcome}: ${lastEnded.error}`,
    );
  if (held > 0) notes.push(`${id}: a batch is held for a decision; see \`fleetbook hold show ${id}\``);
  if (quarantined > 0)
    notes.push(
      `${id}: ${count(quarantined, 'row')} ${quarantined === 1 ? 'is' : 'are'} quarantined; see \`fleetbook rejected ${id}\``,
    );
  for (const { id: alert, kind, acknowledgement } of source.acknowledgedAlerts)
    notes.push(`${id}: alert ${alert} ${kind} is ${acknowledgementText(acknowledgement, now)}`);
  notes.push(...missingRateLines(source.missingRates).map((line) => `${id}: ${line}`));
  notes.push(...unreadRegionNotes(source, now));
  if (source.disabled) notes.push(disabledNote(id, source.disabled, now));
  if (source.paused) notes.push(pausedNote(id, source.paused));
  if (!source.configured) notes.push(notConfigured(source, now));
  return notes;
}

function* unreadRegionNotes({ id, regions }: ShownStatus, now: Date): Generator<string> {
  for (const { code, verifiedAt, unreadSince, reason } of regions) {
    if (unreadSince === null) continue;
    const shown =
      verifiedAt === null
        ? 'it has never been read, and readers do not see it'
        : `readers have its data of ${age(verifiedAt, now)} ago`;
    yield `${id}: region ${code} could not be read: ${reason}; ${shown}`;
  }
}
