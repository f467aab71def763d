import type { Command } from 'commander';
import type { CommandContext } from '../app/feature.ts';
import { FEATURE_CONFIG } from '../app/feature-config.ts';
import { type NamedSource, pricedSource, readNamedSources } from '../config/named-sources.ts';
import type { Environment } from '../config/source-config.ts';
import { openAlerts } from '../db/alerts.ts';
import type { Store } from '../db/connection/connect.ts';
import {
  allSources,
  findProblems,
  isNeeded,
  type JudgedSource,
  readSourceFacts,
  type SourceProblem,
} from '../db/problems.ts';
import { missingRates } from '../db/quarantine.ts';
import type { SourceStatus } from '../db/sources.ts';
import { acknowledgementText, type OpenAlert } from '../domain/alert.ts';
import { nextSlot } from '../domain/schedule.ts';
import { openDatabase } from './terminal/open.ts';
import { add, type Json } from './terminal/options.ts';
import { age, ago, alignedTable, count, show, wrapped } from './terminal/output.ts';
import {
  disabledNote,
  missingRateLines,
  notConfigured,
  pausedNote,
  slotText,
} from './terminal/source-notes.ts';

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
  /** The most urgent first. */
  readonly problems: readonly SourceProblem[];
  /** Open alerts about it that an operator has acknowledged. */
  readonly acknowledgedAlerts: readonly Omit<OpenAlert, 'source'>[];
}

const WIDTH = 80;

export function define(program: Command, { env }: CommandContext): void {
  add(program, 'status', 'show every source: last run, last success, next slot, counts, held batches').action(
    (options) => statusCommand(env(), options),
  );
}

export async function statusCommand(env: Environment, options: Json): Promise<void> {
  const { settings, sources } = readNamedSources(env, FEATURE_CONFIG.sections);
  const configured = sources.map((source) => ({ ...source, ...pricedSource(source, settings) }));
  await using database = openDatabase(env);
  const now = new Date();
  const shown = await readStatus(database, configured, now);
  show(options, shown, () =>
    shown.length === 0
      ? 'no source is configured, and none has ever run\n'
      : statusTable(shown, now, Math.max(WIDTH, process.stdout.columns || 0)),
  );
}

async function readStatus(
  { db }: Pick<Store, 'db'>,
  sources: readonly (JudgedSource & Pick<NamedSource, 'schedule'>)[],
  now: Date,
): Promise<ShownStatus[]> {
  const facts = await readSourceFacts(db, sources);
  const problems = Map.groupBy(findProblems(sources, facts, now), ({ source }) => source);
  const missing = await missingRates(db);
  const alerts = Map.groupBy(await openAlerts(db), ({ source }) => source);
  const shown = allSources(sources, facts.status).map((status): ShownStatus => {
    const { id } = status;
    const config = sources.find((each) => each.id === id);
    return {
      ...status,
      registeredAt: status.registeredAt || null,
      configured: config !== undefined,
      nextSlot: config && !status.disabled ? nextSlot(config.schedule, now) : null,
      needed: isNeeded(status, facts),
      missingRates: missing.get(id) ?? [],
      problems: problems.get(id) ?? [],
      acknowledgedAlerts: (alerts.get(id) ?? [])
        .filter(({ acknowledgement }) => acknowledgement !== null)
        .map(({ source: _, ...alert }) => alert),
    };
  });
  const place = new Map(sources.map(({ id }, index) => [id, index]));
  const placeOf = ({ id }: ShownStatus) => place.get(id) ?? sources.length;
  return shown.sort((one, other) => placeOf(one) - placeOf(other));
}

const HEAD = ['SOURCE', 'LAST RUN', 'OUTCOME', 'LAST GOOD', 'NEXT UTC', 'KNOWN', 'PUBLISHED'] as const;

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
  const table = alignedTable(HEAD, rows, width);
  return notes.length > 0 ? `${table}\n${notes.join('')}` : table;
}

/** Returns notes for an operator: each problem, what needs a decision, and what is intended. */
function notesOf(source: ShownStatus, now: Date): string[] {
  const { id, lastRun, quarantined } = source;
  const notes = source.problems.flatMap((problem) => problemNotes(problem, source, now));
  if (lastRun?.outcome === 'cancelled' && lastRun.error) notes.push(`${id}: ${lastRun.error}`);
  if (!source.needed) notes.push(`${id}: cannot be read; no price needs its rates`);
  if (quarantined > 0)
    notes.push(
      `${id}: ${count(quarantined, 'row')} ${quarantined === 1 ? 'is' : 'are'} quarantined; see \`fleetbook rejected ${id}\``,
    );
  for (const { id: alert, kind, acknowledgement } of source.acknowledgedAlerts)
    if (acknowledgement)
      notes.push(`${id}: alert ${alert} ${kind} is ${acknowledgementText(acknowledgement, now)}`);
  notes.push(...missingRateLines(source.missingRates).map((line) => `${id}: ${line}`));
  if (source.disabled) notes.push(disabledNote(id, source.disabled, now));
  if (source.paused) notes.push(pausedNote(id, source.paused));
  if (!source.configured) notes.push(notConfigured(source, now));
  return notes;
}

function problemNotes(problem: SourceProblem, source: ShownStatus, now: Date): string[] {
  const { kind, text, since } = problem;
  const { id, lastRun, lastEnded, failedRuns } = source;
  switch (kind) {
    case 'held':
      return [`${id}: a batch is held for a decision; see \`fleetbook hold show ${id}\``];
    case 'failing': {
      const row = failedRuns > 1 ? ` (the last ${failedRuns} runs failed, the first ${ago(since, now)})` : '';
      const again =
        lastRun?.outcome === 'running'
          ? `runs again; its last run failed ${ago(lastEnded?.finishedAt, now)}: `
          : '';
      return [`${id}: ${again}${text}${row}`];
    }
    case 'stale-regions':
    case 'unread-regions':
      return [...regionNotes(problem, source, now)];
    // A cell of the table states the first one, and the note of the others has its own text.
    case 'never-read':
    case 'paused':
    case 'not-configured':
      return [];
    default:
      return [`${id}: ${text}`];
  }
}

function* regionNotes(
  { regions: codes }: SourceProblem,
  { id, regions }: ShownStatus,
  now: Date,
): Generator<string> {
  for (const { code, verifiedAt, reason } of regions) {
    if (!codes?.includes(code)) continue;
    const shown =
      verifiedAt === null
        ? 'it has never been read, and readers do not see it'
        : `readers have its data of ${ago(verifiedAt, now)}`;
    yield reason === null
      ? `${id}: region ${code} was not read lately; ${shown}`
      : `${id}: region ${code} could not be read: ${reason}; ${shown}`;
  }
}
