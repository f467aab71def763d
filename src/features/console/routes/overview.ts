/** Shows the state and the problems of each source. `db/problems.ts` decides what is a problem. */

import {
  allSources,
  findProblems,
  isNeeded,
  type JudgedSource,
  type SourceFacts,
  type SourceProblem,
  type WorkerProblem,
} from '../../../db/problems.ts';
import type { SourceStatus } from '../../../db/sources.ts';
import type { OpenAlert } from '../../../domain/alert.ts';
import { nextSlot } from '../../../domain/schedule.ts';
import type { SourceStrip } from '../queries/runs.ts';
import type { OtherProblem, Overview, Problem, QueueDepth, ShownSource } from './answers.ts';

export interface ConsoleSource extends JudgedSource {
  /** Five cron fields, UTC. */
  readonly schedule: string;
}

export interface Stored extends SourceFacts {
  readonly strips: readonly SourceStrip[];
  /** All open alerts. */
  readonly alerts: readonly OpenAlert[];
}

/** Only a source without a problem is `ok`: it was read, is young enough and publishes data. */
export function judgeSources(
  configured: readonly ConsoleSource[],
  stored: Stored,
  now: Date,
): Pick<Overview, 'problems' | 'sources'> {
  const strips = new Map(stored.strips.map((each) => [each.id, each]));
  const problems = findProblems(configured, stored, now).map((each) =>
    withAcknowledgement(each, stored.alerts),
  );
  const sources = allSources(configured, stored.status).map((each): ShownSource => {
    const config = configured.find(({ id }) => id === each.id);
    const own = problems.filter(({ source }) => source === each.id);
    const { regions: _, ...rest } = each;
    const strip = strips.get(each.id);
    return {
      ...rest,
      ...freshness(each.verifiedAt, config, now),
      configured: config !== undefined,
      schedule: config?.schedule ?? null,
      nextSlot: config && !each.disabled ? nextSlot(config.schedule, now) : null,
      state: own.length === 0 && !isNeeded(each, stored) ? 'not-needed' : stateOf(each, own),
      severity: own.find(({ severity }) => severity === 'problem')?.severity ?? own[0]?.severity ?? null,
      runs: strip?.runs ?? [],
      changedAt: strip?.changedAt ?? null,
    };
  });
  return { problems, sources: sources.sort((one, other) => (one.id < other.id ? -1 : 1)) };
}

/** The alerts about the problems of a source, by kind. */
const ALERTS: Readonly<Partial<Record<SourceProblem['kind'], string>>> = {
  held: 'batch_held',
  paused: 'source_paused',
  failing: 'source_failing',
  'never-read': 'source_stale',
  stale: 'source_stale',
  'stale-regions': 'region_stale',
};

function withAcknowledgement(problem: SourceProblem, alerts: readonly OpenAlert[]): Problem {
  const subjects = problem.regions?.map((code) => `${problem.source}/${code}`) ?? [problem.source];
  const alert = alerts.find(
    ({ kind, subject, acknowledgement }) =>
      acknowledgement !== null && kind === ALERTS[problem.kind] && subjects.includes(subject),
  );
  return alert?.acknowledgement ? { ...problem, acknowledgement: alert.acknowledgement } : problem;
}

/** Returns the problems that are of no source, and those of sources that only alerts report. */
export function otherProblems(
  worker: WorkerProblem | undefined,
  queues: readonly QueueDepth[] | null,
  alerts: readonly OpenAlert[],
): OtherProblem[] {
  const shown = Object.values(ALERTS);
  return [
    ...(worker ? [{ ...worker, about: 'workers', path: null }] : []),
    ...(queues === null
      ? [{ severity: 'problem', about: 'queues’ Redis', text: 'it does not answer', path: null } as const]
      : []),
    ...alerts
      .filter(({ kind }) => !shown.includes(kind))
      .map(
        ({ kind, summary }) =>
          ({ severity: 'warning', about: kind, text: summary, path: '/alerts' }) as const,
      ),
  ];
}

export function freshness(verifiedAt: string | null, config: ConsoleSource | undefined, now: Date) {
  return {
    ageSeconds:
      verifiedAt === null ? null : Math.max(0, Math.round((now.getTime() - Date.parse(verifiedAt)) / 1000)),
    objectiveSeconds: config?.maxAge ?? null,
  };
}

function stateOf(
  { lastRun, retiredAt, disabled }: SourceStatus,
  problems: readonly SourceProblem[],
): ShownSource['state'] {
  const [first] = problems;
  if (first === undefined && disabled !== null) return 'disabled';
  if (first === undefined) return retiredAt === null ? 'ok' : 'retired';
  return first.kind === 'never-read' && lastRun?.outcome === 'running' ? 'running' : first.kind;
}
