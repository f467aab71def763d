/**
 * Decides what is a problem of a source or of the workers. The console's overview, `doctor`, `status` and the conditions of alerts
 * show only what this file finds, so none of them contradicts another.
 */
import { EXCLUSION_MEANINGS } from '../domain/machine.ts';
import type { PricedSource } from '../domain/prices/exchange-rates.ts';
import { COUNTED, FAILURES_IN_ROW, type Pause } from '../domain/source.ts';
import { span } from '../domain/text/time-span.ts';
import type { Database } from './connection/client.ts';
import { type BatchRecord, pendingBatches, whyHeld } from './held-batches.ts';
import { areRatesNeeded } from './prices/currency.ts';
import { type HiddenReason, hiddenReasons } from './quarantine.ts';
import { type RegionStatus, type SourceStatus, sourceStatus } from './sources.ts';

/** The kinds of problems of a source, the most urgent first. */
export const PROBLEMS = [
  'held',
  'paused',
  'failing',
  'never-read',
  'stale',
  'stale-regions',
  'unread-regions',
  'empty',
  'not-configured',
] as const;
export type ProblemKind = (typeof PROBLEMS)[number];

/** `problem`: an operator has to act; `warning`: an operator should know. */
export type Severity = 'problem' | 'warning';

export interface SourceProblem {
  readonly kind: ProblemKind;
  readonly severity: Severity;
  readonly source: string;
  /** One sentence, without a full stop. */
  readonly text: string;
  /** RFC 3339; null if it is not known. */
  readonly since: string | null;
  /** The batch that is held. */
  readonly batch?: number;
  /** Codes of the regions that are stale, or that the last run could not read. */
  readonly regions?: readonly string[];
}

export interface JudgedSource extends PricedSource {
  /** The largest allowed age of its data (seconds). */
  readonly maxAge: number;
}

export interface SourceFacts {
  readonly status: readonly SourceStatus[];
  readonly pending: readonly BatchRecord[];
  /** Why sources without published data have none. */
  readonly hidden: readonly HiddenReason[];
  /** False if a source of exchange rates fails and no price needs them. */
  readonly areRatesNeeded: boolean;
}

export async function readSourceFacts(
  db: Database,
  configured: readonly PricedSource[],
): Promise<SourceFacts> {
  const [status, pending] = await Promise.all([sourceStatus(db), pendingBatches(db)]);
  const empty = status.filter(({ published }) => published === 0).map(({ id }) => id);
  return {
    status,
    pending,
    hidden: empty.length > 0 ? await hiddenReasons(db, empty) : [],
    areRatesNeeded: await areRatesNeeded(db, configured, status),
  };
}

/** Returns the stored sources, and configured ones that no run and no worker has registered yet. */
export function allSources(configured: readonly PricedSource[], stored: readonly SourceStatus[]) {
  const known = new Set(stored.map(({ id }) => id));
  return [...stored, ...configured.filter(({ id }) => !known.has(id)).map(neverRan)];
}

function neverRan({ id, kind }: PricedSource): SourceStatus {
  return {
    id,
    kind,
    lastRun: null,
    lastEnded: null,
    verifiedAt: null,
    registeredAt: '',
    retiredAt: null,
    disabled: null,
    paused: null,
    failedRuns: 0,
    failingSince: null,
    heldSince: null,
    regions: [],
    counted: COUNTED[kind],
    known: 0,
    published: 0,
    quarantined: 0,
    held: 0,
  };
}

/** Returns the problems of all sources, those of the most urgent kinds first. */
export function findProblems(
  configured: readonly JudgedSource[],
  facts: SourceFacts,
  now: Date,
): SourceProblem[] {
  const configuration = new Map(configured.map((each) => [each.id, each]));
  const urgency = ({ kind }: SourceProblem) => PROBLEMS.indexOf(kind);
  return allSources(configured, facts.status)
    .flatMap((status) => problemsOf(status, configuration.get(status.id), facts, now))
    .sort((one, other) => urgency(one) - urgency(other) || (one.source < other.source ? -1 : 1));
}

export const isNeeded = ({ kind }: Pick<SourceStatus, 'kind'>, facts: Pick<SourceFacts, 'areRatesNeeded'>) =>
  kind !== 'rates' || facts.areRatesNeeded;

export const isOlder = (instant: string, maxAge: number, now: Date): boolean =>
  now.getTime() - Date.parse(instant) > maxAge * 1000;

function problemsOf(
  status: SourceStatus,
  config: JudgedSource | undefined,
  facts: SourceFacts,
  now: Date,
): SourceProblem[] {
  const { id: source, retiredAt, disabled, paused, verifiedAt, published } = status;
  const problems: SourceProblem[] = [];
  const batch = facts.pending.find(({ sourceId }) => sourceId === source);
  if (batch) problems.push(heldProblem(batch));
  if (config === undefined) return [...problems, ...notConfigured(status)];
  // The age of a disabled or retired source is intended, and that of rates that no price needs harms nothing.
  if (disabled !== null || retiredAt !== null || !isNeeded(status, facts)) return problems;
  const { maxAge } = config;
  if (paused !== null) problems.push(pausedProblem(source, paused));
  problems.push(...failing(status));
  if (verifiedAt === null) problems.push(neverRead(status, maxAge, now));
  else if (isOlder(verifiedAt, maxAge, now))
    problems.push({
      kind: 'stale',
      severity: 'problem',
      source,
      text: `its data is ${ageText(verifiedAt, now)} old; the limit is ${span(maxAge)}`,
      since: verifiedAt,
    });
  problems.push(...regionProblems(status, maxAge, now));
  if (verifiedAt !== null && published === 0) problems.push(empty(status, facts.hidden));
  return problems;
}

const ageText = (instant: string, now: Date) =>
  span(Math.max(0, Math.round((now.getTime() - Date.parse(instant)) / 1000)));

function heldProblem(held: BatchRecord): SourceProblem {
  const { id: batch, sourceId: source, heldSince: since } = held;
  return { kind: 'held', severity: 'warning', source, text: whyHeld(held), since, batch };
}

function pausedProblem(source: string, { until, reason }: Pause): SourceProblem {
  const text = `it is paused until ${until}, and then runs again: ${reason}`;
  return { kind: 'paused', severity: 'warning', source, text, since: null };
}

function failing({ id, lastEnded, failedRuns, failingSince }: SourceStatus): SourceProblem[] {
  if (lastEnded === null || !['failed', 'interrupted'].includes(lastEnded.outcome)) return [];
  const text = lastEnded.error ?? `the last run ended as ${lastEnded.outcome}`;
  const severity = failedRuns >= FAILURES_IN_ROW ? 'problem' : 'warning';
  const since = failingSince ?? lastEnded.finishedAt ?? lastEnded.startedAt;
  return [{ kind: 'failing', severity, source: id, text, since }];
}

/** A source that waits for its first run is only a warning, for as long as its data may be old. */
function neverRead(status: SourceStatus, maxAge: number, now: Date): SourceProblem {
  const since = status.registeredAt || null;
  const isLate = since !== null && isOlder(since, maxAge, now);
  return {
    kind: 'never-read',
    severity: status.lastEnded !== null || isLate ? 'problem' : 'warning',
    source: status.id,
    text: 'no run has read it successfully yet; readers get none of its data',
    since,
  };
}

/** A source that is stale itself has no further problem for its stale regions. */
function regionProblems(status: SourceStatus, maxAge: number, now: Date): SourceProblem[] {
  const { id: source, regions, verifiedAt, registeredAt } = status;
  const known = verifiedAt ?? registeredAt;
  const isStaleItself = known !== '' && isOlder(known, maxAge, now);
  const sinceOf = (region: RegionStatus) => region.verifiedAt ?? region.unreadSince ?? registeredAt;
  const stale = isStaleItself ? [] : regions.filter((region) => isOlder(sinceOf(region), maxAge, now));
  const unread = regions.filter(
    (region) => region.unreadSince !== null && !stale.some(({ code }) => code === region.code),
  );
  const problems: SourceProblem[] = [];
  const [oldest] = stale.toSorted((one, other) => (sinceOf(one) < sinceOf(other) ? -1 : 1));
  if (oldest !== undefined) {
    const why = oldest.reason === null ? '' : `: ${oldest.reason}`;
    problems.push({
      kind: 'stale-regions',
      severity: 'problem',
      source,
      text: `${stale.length} of ${regions.length} regions were not read for ${span(maxAge)} (${codesText(stale)})${why}`,
      since: sinceOf(oldest),
      regions: stale.map(({ code }) => code),
    });
  }
  const [first] = unread;
  if (first !== undefined) {
    const [since = null] = unread.flatMap(({ unreadSince }) => unreadSince ?? []).sort();
    problems.push({
      kind: 'unread-regions',
      severity: 'warning',
      source,
      text: `${unread.length} of ${regions.length} regions could not be read (${codesText(unread)}): ${first.reason}`,
      since,
      regions: unread.map(({ code }) => code),
    });
  }
  return problems;
}

const NAMED = 3;

function codesText(regions: readonly RegionStatus[]): string {
  const codes = regions.slice(0, NAMED).map(({ code }) => code);
  return `${codes.join(', ')}${regions.length > NAMED ? ', …' : ''}`;
}

function empty(status: SourceStatus, hidden: readonly HiddenReason[]): SourceProblem {
  const { id: source, counted, verifiedAt } = status;
  const why = whyEmpty(
    status,
    hidden.filter(({ id }) => id === source),
  );
  const text = `it was read, but readers get no ${counted} of it: ${why}`;
  return { kind: 'empty', severity: 'warning', source, text, since: verifiedAt };
}

function whyEmpty(
  { id, counted, known, quarantined }: SourceStatus,
  hidden: readonly HiddenReason[],
): string {
  const named = (of: HiddenReason['of'], words: (reason: string) => string) =>
    hidden
      .filter((each) => each.of === of)
      .slice(0, NAMED)
      .map(({ reason, count }) => `${count} ${words(reason)}`)
      .join(', ');
  const meaningOf = (reason: string) =>
    `${reason}: ${EXCLUSION_MEANINGS[reason] ?? 'a reason of another release'}`;
  const reasons: string[] = [];
  if (counted === 'database plans')
    reasons.push('no exchange rate is known for their prices; give one in CATALOGUE_RATES');
  if (counted === 'machines' && known > 0)
    reasons.push(`all ${known} machines are excluded (${named('excluded', meaningOf)})`);
  if (quarantined > 0) {
    const examples = named('quarantined', (reason) => reason);
    reasons.push(`${quarantined} rows are rejected (${examples}); see fleetbook rejected ${id}`);
  }
  if (reasons.length > 0) return reasons.join('; ');
  return `its upstream listed none; check that its credentials and options may list ${counted}, or disable it: fleetbook source disable ${id}`;
}

/** The data of a stored source that is not configured stays published, and nothing updates it. */
function notConfigured({ id, counted, published, retiredAt, verifiedAt }: SourceStatus): SourceProblem[] {
  if (retiredAt !== null || published === 0) return [];
  const text = `it is not configured here, but ${published === 1 ? 'one row of it is' : `${published} ${counted} are`} still published; configure it again, or run: fleetbook source retire ${id}`;
  return [{ kind: 'not-configured', severity: 'warning', source: id, text, since: verifiedAt }];
}

/** A worker claims a slot each minute. */
const WORKER_SILENT_MS = 180_000;

export interface WorkerProblem {
  readonly severity: Severity;
  readonly text: string;
}

/** @param sign when a worker last claimed a slot; undefined if none ever ran */
export function workerProblem(sign: string | undefined, now: Date): WorkerProblem | undefined {
  if (sign === undefined) return { severity: 'warning', text: 'none has run yet' };
  if (now.getTime() - Date.parse(sign) <= WORKER_SILENT_MS) return undefined;
  return { severity: 'problem', text: `none runs: the last sign of one is ${ageText(sign, now)} old` };
}
