/** Finds the state and the problems of each source. */

import type { BatchRecord } from '../../../db/held-batches.ts';
import type { HiddenReason } from '../../../db/quarantine.ts';
import type { SourceStrip } from '../../../db/runs/records.ts';
import type { SourceStatus } from '../../../db/sources.ts';
import type { AcknowledgedAlert } from '../../../domain/alert.ts';
import { EXCLUSION_MEANINGS } from '../../../domain/exclusion.ts';
import type { PricedSource } from '../../../domain/prices/exchange-rates.ts';
import { nextSlot } from '../../../domain/schedule.ts';
import { COUNTED } from '../../../domain/source.ts';
import { span } from '../../../domain/text/time-span.ts';
import { type Overview, PROBLEMS, type Problem, type ShownSource } from './api.ts';

export interface ConsoleSource extends PricedSource {
  /** Five cron fields, UTC. */
  readonly schedule: string;
  readonly objectiveSeconds: number;
}

export interface Stored {
  readonly status: readonly SourceStatus[];
  readonly strips: readonly SourceStrip[];
  readonly pending: readonly BatchRecord[];
  readonly acknowledged: readonly AcknowledgedAlert[];
  readonly hidden: readonly HiddenReason[];
  /** False if a source of exchange rates fails and no price needs them. */
  readonly areRatesNeeded: boolean;
}

/** Only a source without a problem is `ok`: it was read, is young enough and publishes data. */
export function judgeSources(
  configured: readonly ConsoleSource[],
  stored: Stored,
  now: Date,
): Pick<Overview, 'problems' | 'sources'> {
  const status = new Map(stored.status.map((each) => [each.id, each]));
  const strips = new Map(stored.strips.map((each) => [each.id, each]));
  const unknown = configured.filter(({ id }) => !status.has(id)).map(neverRan);
  const found = [...stored.status, ...unknown].map((each) => {
    const config = configured.find(({ id }) => id === each.id);
    const batch = stored.pending.find(({ sourceId }) => sourceId === each.id);
    const isNeeded = each.kind !== 'rates' || stored.areRatesNeeded;
    const problems = isNeeded
      ? problemsOf(each, config, batch, stored.hidden, now).map((problem) =>
          withAcknowledgement(problem, stored.acknowledged),
        )
      : [];
    const strip = strips.get(each.id);
    const { regions: _, ...rest } = each;
    const shown: ShownSource = {
      ...rest,
      ...freshness(each.verifiedAt, config, now),
      configured: config !== undefined,
      schedule: config?.schedule ?? null,
      nextSlot: config && !each.disabled ? nextSlot(config.schedule, now) : null,
      state: isNeeded ? stateOf(each, problems) : 'not-needed',
      runs: strip?.runs ?? [],
      changedAt: strip?.changedAt ?? null,
    };
    return { shown, problems };
  });
  const urgency = ({ kind }: Problem) => PROBLEMS.indexOf(kind);
  const bySource = (one: string, other: string) => (one < other ? -1 : 1);
  return {
    problems: found
      .flatMap(({ problems }) => problems)
      .sort((one, other) => urgency(one) - urgency(other) || bySource(one.source, other.source)),
    sources: found.map(({ shown }) => shown).sort((one, other) => bySource(one.id, other.id)),
  };
}

const ALERTS: Readonly<Partial<Record<Problem['kind'], string>>> = {
  held: 'batch_held',
  failing: 'source_failing',
  'never-read': 'source_stale',
  stale: 'source_stale',
};

function withAcknowledgement(problem: Problem, acknowledged: readonly AcknowledgedAlert[]): Problem {
  const alert = acknowledged.find(
    ({ kind, subject }) => kind === ALERTS[problem.kind] && subject === problem.source,
  );
  return alert ? { ...problem, acknowledgement: alert.acknowledgement } : problem;
}

export function freshness(verifiedAt: string | null, config: ConsoleSource | undefined, now: Date) {
  return {
    ageSeconds:
      verifiedAt === null ? null : Math.max(0, Math.round((now.getTime() - Date.parse(verifiedAt)) / 1000)),
    objectiveSeconds: config?.objectiveSeconds ?? null,
  };
}

function neverRan({ id, kind }: ConsoleSource): SourceStatus {
  const never = {
    lastRun: null,
    lastEnded: null,
    verifiedAt: null,
    retiredAt: null,
    disabled: null,
    paused: null,
  };
  return {
    id,
    kind,
    ...never,
    registeredAt: '',
    regions: [],
    counted: COUNTED[kind],
    known: 0,
    published: 0,
    quarantined: 0,
    held: 0,
  };
}

function stateOf(
  { lastRun, retiredAt, disabled }: SourceStatus,
  problems: readonly Problem[],
): ShownSource['state'] {
  const [first] = problems;
  if (first === undefined && disabled !== null) return 'disabled';
  if (first === undefined) return retiredAt === null ? 'ok' : 'retired';
  return first.kind === 'never-read' && lastRun?.outcome === 'running' ? 'running' : first.kind;
}

function problemsOf(
  status: SourceStatus,
  config: ConsoleSource | undefined,
  batch: BatchRecord | undefined,
  hidden: readonly HiddenReason[],
  now: Date,
): Problem[] {
  const { id: source, lastEnded, verifiedAt, regions, published, counted } = status;
  if (config === undefined) return notConfigured(status);
  const problems: Problem[] = [];
  if (batch) {
    const text = batch.broken.map(({ detail }) => detail).join('; ');
    problems.push({ kind: 'held', source, text, since: batch.heldSince, batch: batch.id });
  }
  // The age of a disabled source is intended.
  if (status.disabled !== null) return problems;
  if (lastEnded !== null && (lastEnded.outcome === 'failed' || lastEnded.outcome === 'interrupted')) {
    const { paused } = status;
    const text = paused
      ? `it is paused until ${paused.until}, and then runs again: ${paused.reason}`
      : (lastEnded.error ?? `the last run ended as ${lastEnded.outcome}`);
    problems.push({ kind: 'failing', source, text, since: lastEnded.finishedAt ?? lastEnded.startedAt });
  }
  const { ageSeconds, objectiveSeconds } = freshness(verifiedAt, config, now);
  if (ageSeconds === null) {
    const text = 'no run has read it successfully yet; readers get none of its data';
    problems.push({ kind: 'never-read', source, text, since: status.registeredAt || null });
  } else if (objectiveSeconds !== null && ageSeconds > objectiveSeconds) {
    const text = `its data is ${span(ageSeconds)} old; the limit is ${span(objectiveSeconds)}`;
    problems.push({ kind: 'stale', source, text, since: verifiedAt });
  }
  const unread = regions.filter(({ unreadSince }) => unreadSince !== null);
  if (unread.length > 0) problems.push(unreadProblem(source, unread, regions.length));
  if (ageSeconds !== null && published === 0) {
    const ofSource = hidden.filter(({ id }) => id === source);
    const text = `it was read, but readers get no ${counted} of it: ${whyEmpty(status, ofSource)}`;
    problems.push({ kind: 'empty', source, text, since: verifiedAt });
  }
  return problems;
}

const REASONS_NAMED = 3;

function whyEmpty(
  { id, counted, known, quarantined }: SourceStatus,
  hidden: readonly HiddenReason[],
): string {
  const named = (of: HiddenReason['of'], words: (reason: string) => string) =>
    hidden
      .filter((each) => each.of === of)
      .slice(0, REASONS_NAMED)
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

function unreadProblem(source: string, unread: SourceStatus['regions'], total: number): Problem {
  const [first] = unread;
  const codes = unread.slice(0, 3).map(({ code }) => code);
  const more = unread.length > codes.length ? ', …' : '';
  const [since = null] = unread.flatMap(({ unreadSince }) => unreadSince ?? []).sort();
  const text = `${unread.length} of ${total} regions could not be read (${codes.join(', ')}${more}): ${first?.reason}`;
  return { kind: 'unread-regions', source, text, since };
}

/** The data of a stored source that is not configured stays published, and nothing updates it. */
function notConfigured({ id, counted, published, retiredAt, verifiedAt }: SourceStatus): Problem[] {
  if (retiredAt !== null || published === 0) return [];
  const text = `it is not configured here, but ${published === 1 ? 'one row of it is' : `${published} ${counted} are`} still published; configure it again, or run: fleetbook source retire ${id}`;
  return [{ kind: 'not-configured', source: id, text, since: verifiedAt }];
}
