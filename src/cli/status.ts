import { FEATURE_CONFIG } from '../app/feature-settings.ts';
import { openAlerts } from '../app/open-alerts.ts';
import { type NamedSource, readNamedSources } from '../config/named-sources.ts';
import { pricedSource } from '../config/priced-source.ts';
import { databaseUrl } from '../config/settings.ts';
import type { Environment } from '../config/source-config.ts';
import type { Sql } from '../db/connection/client.ts';
import { postgresProblem } from '../db/connection/server-problem.ts';
import { areRatesNeeded } from '../db/currency.ts';
import { missingRates } from '../db/quarantine.ts';
import { type SourceStatus, sourceStatus } from '../db/sources.ts';
import { type AcknowledgedAlert, acknowledgementText } from '../domain/alert.ts';
import type { PricedSource } from '../domain/exchange-rates.ts';
import { nextSlot } from '../domain/schedule.ts';
import { UsageFailure } from './terminal/failure.ts';
import { liveView } from './terminal/live-view.ts';
import { openDatabase } from './terminal/open-database.ts';
import { printJson, printText } from './terminal/print.ts';
import { missingRateLines } from './terminal/reasons.ts';
import { disabledNote, notConfigured } from './terminal/source-notes.ts';
import { age, alignedTable, shortened, wrapped } from './terminal/table.ts';
import { stopSignal } from './terminal/terminal.ts';

interface ShownStatus extends Omit<SourceStatus, 'registeredAt'> {
  /** RFC 3339; null before its first run or the first start of a worker that knows it. */
  readonly registeredAt: string | null;
  /** Whether this configuration names it. */
  readonly configured: boolean;
  /** RFC 3339; null for a source that is not configured here (any more), or that is disabled. */
  readonly nextSlot: string | null;
  /** False for exchange rates that fail and that no price needs: an operator has nothing to do. */
  readonly needed: boolean;
  /** Currencies of its machines that are not published because no exchange rate is known. */
  readonly missingRates: readonly string[];
  /** Open alerts about it that an operator has acknowledged. */
  readonly acknowledgedAlerts: readonly Omit<AcknowledgedAlert, 'source'>[];
}

/** Characters of a line; a wider terminal gets longer ones. */
const WIDTH = 80;

/** Milliseconds between two drawings of `--watch`. */
const WATCH_EVERY_MS = 2000;

/** @throws UsageFailure for `--watch` where there is no terminal, or as JSON */
export async function statusCommand(
  env: Environment,
  options: { json?: boolean; watch?: boolean },
): Promise<void> {
  const { settings, sources } = readNamedSources(env, FEATURE_CONFIG.sections);
  const configured = sources.map((source) => ({ ...source, ...pricedSource(source, settings) }));
  if (options.watch && (options.json || !process.stdout.isTTY))
    throw new UsageFailure(
      '--watch draws on a terminal; leave it out to get the status once, as a table or with --json',
    );
  await using register = openDatabase(env);
  const width = () => {
    const columns = process.stdout.columns || WIDTH;
    // With --watch a line that takes two rows would push the head off a small terminal.
    return options.watch ? columns : Math.max(WIDTH, columns);
  };
  const draw = async () => {
    const now = new Date();
    const shown = await readStatus(register.sql, configured, now);
    if (shown.length === 0) return 'no source is configured and none ever ran\n';
    return statusTable(shown, now, width());
  };
  if (options.watch) {
    const { stdin: input, stdout: output } = process;
    const url = databaseUrl(register);
    const problemOf = (error: unknown) => postgresProblem(error, { setting: 'DATABASE_URL', url });
    await liveView({ draw, problemOf, input, output, everyMs: WATCH_EVERY_MS, stop: stopSignal() });
  } else if (options.json) printJson(await readStatus(register.sql, configured, new Date()));
  else printText(await draw());
}

/** Every source that is configured, then those that are stored only. */
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
    const status = {
      ...(stored.get(source.id) ?? neverRan(source.id, source.kind)),
      ...moreOf(source),
    };
    return { ...status, configured: true, nextSlot: status.disabled ? null : nextSlot(source.schedule, now) };
  });
  for (const status of stored.values()) {
    if (!shown.some(({ id }) => id === status.id))
      shown.push({ ...status, ...moreOf(status), configured: false, nextSlot: null });
  }
  return shown;
}

function neverRan(
  id: string,
  kind: SourceStatus['kind'],
): Omit<ShownStatus, 'configured' | 'nextSlot' | 'needed' | 'missingRates' | 'acknowledgedAlerts'> {
  const never = { lastRun: null, lastEnded: null, verifiedAt: null, registeredAt: null, retiredAt: null };
  return { id, kind, ...never, disabled: null, regions: [], known: 0, published: 0, quarantined: 0, held: 0 };
}

const HEAD = ['SOURCE', 'LAST RUN', 'OUTCOME', 'LAST GOOD', 'NEXT UTC', 'KNOWN', 'PUBLISHED'] as const;
const SHORTEST_ID = 12;

/** One row a source, and under the table what an operator has to know besides. No line is longer than `width`. */
export function statusTable(sources: readonly ShownStatus[], now: Date, width = WIDTH): string {
  const rows = (idWidth: number) =>
    sources.map((source) => [
      shortened(source.id, idWidth),
      age(source.lastRun?.startedAt, now),
      source.needed ? (source.lastRun?.outcome ?? 'never ran') : 'not needed',
      age(source.verifiedAt, now),
      source.disabled ? 'disabled' : slotText(source.nextSlot, now),
      String(source.known),
      String(source.published),
    ]);
  const full = alignedTable(HEAD, rows(Number.POSITIVE_INFINITY));
  const excess = widest(full) - width;
  const longestId = Math.max(...sources.map(({ id }) => id.length));
  const text = excess > 0 ? alignedTable(HEAD, rows(Math.max(SHORTEST_ID, longestId - excess))) : full;
  const notes = sources.flatMap((source) => notesOf(source, now));
  return text + (notes.length > 0 ? `\n${notes.map((note) => wrapped(note, width)).join('')}` : '');
}

const widest = (text: string): number => Math.max(...text.split('\n').map((line) => line.length));

/** What does not fit into a row: the last error, also while the source is tried again, and what waits for a person. */
function notesOf(source: ShownStatus, now: Date): string[] {
  const { id, lastRun, lastEnded, held, quarantined } = source;
  const notes: string[] = [];
  if (!source.needed) notes.push(`${id}: cannot be read, and no price needs its rates`);
  else if (lastRun?.error) notes.push(`${id}: ${lastRun.error}`);
  else if (lastRun?.outcome === 'running' && lastEnded?.error)
    notes.push(
      `${id}: runs again; ${age(lastEnded.finishedAt, now)} ago it ended as ${lastEnded.outcome}: ${lastEnded.error}`,
    );
  if (held > 0) notes.push(`${id}: a batch is held for a decision; see \`fleetbook hold show ${id}\``);
  if (quarantined > 0)
    notes.push(
      `${id}: ${quarantined} ${quarantined === 1 ? 'row is' : 'rows are'} quarantined, not used; see \`fleetbook rejected ${id}\``,
    );
  for (const { id: alert, kind, acknowledgement } of source.acknowledgedAlerts)
    notes.push(`${id}: alert ${alert} ${kind} is ${acknowledgementText(acknowledgement, now)}`);
  notes.push(...missingRateLines(source.missingRates).map((line) => `${id}: ${line}`));
  notes.push(...unreadRegionNotes(source, now));
  if (source.disabled) notes.push(disabledNote(id, source.disabled, now));
  if (!source.configured) notes.push(notConfigured(source, now));
  return notes;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
/** From here on a month alone could be that of either year. */
const MONTH_IS_CLEAR_DAYS = 300;

/** A slot in UTC: today the time alone, else with its day, and with its year when it is far ahead. */
export function slotText(slot: string | null, now: Date): string {
  if (slot === null) return '-';
  const time = slot.slice(11, 16);
  if (slot.slice(0, 10) === now.toISOString().slice(0, 10)) return time;
  const at = new Date(slot);
  const isFar = at.getTime() - now.getTime() > MONTH_IS_CLEAR_DAYS * 86_400_000;
  return isFar ? slot.slice(0, 10) : `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]} ${time}`;
}

/** A note for each region that the last good run could not read. */
function* unreadRegionNotes({ id, regions }: ShownStatus, now: Date): Generator<string> {
  for (const { code, verifiedAt, unreadSince, reason } of regions) {
    if (unreadSince === null) continue;
    const shown =
      verifiedAt === null
        ? 'it was never read, so that readers do not see it'
        : `readers have it as of ${age(verifiedAt, now)} ago`;
    yield `${id}: region ${code} could not be read: ${reason}; ${shown}`;
  }
}
