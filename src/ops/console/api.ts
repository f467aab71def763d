/** What the console's routes answer: types alone, which the browser's code shares. Instants are RFC 3339, UTC. */
import type { StripRun } from '../../db/reads/run-strip.ts';
import type { SourceStatus } from '../../db/reads/status.ts';

export type { StripRun } from '../../db/reads/run-strip.ts';

/** The kinds of problems that need a person, the most urgent first. */
export const PROBLEMS = [
  'held',
  'failing',
  'never-read',
  'stale',
  'unread-regions',
  'empty',
  'not-configured',
] as const;
export type ProblemKind = (typeof PROBLEMS)[number];

export interface Problem {
  readonly kind: ProblemKind;
  readonly source: string;
  /** One sentence, without a full stop. */
  readonly text: string;
  /** Since when; null where that is not known. */
  readonly since: string | null;
  /** The batch that waits, of a problem `held`. */
  readonly batch?: number;
}

/** Freshness of a source against its objective. */
export interface Freshness {
  /** Age of the data in seconds; null for a source that was never read well. */
  readonly ageSeconds: number | null;
  /** How old it may be, in seconds; null for a source that is not configured. */
  readonly objectiveSeconds: number | null;
}

export interface ShownSource extends Omit<SourceStatus, 'regions'>, Freshness {
  readonly configured: boolean;
  /** Five cron fields, UTC; null for a source that is not configured. */
  readonly schedule: string | null;
  readonly nextSlot: string | null;
  /** The most urgent problem, `running` for a first run under way, `retired`, or `ok`. */
  readonly state: ProblemKind | 'running' | 'retired' | 'ok';
  readonly regionCount: number;
  readonly unreadRegions: number;
  /** Oldest first. */
  readonly runs: readonly StripRun[];
  /** When the last run began that stored a change. */
  readonly changedAt: string | null;
}

export interface QueueDepth {
  readonly name: string;
  readonly waiting: number;
  readonly active: number;
  /** Waiting for a time: a slot's job that is tried again. */
  readonly delayed: number;
  readonly failed: number;
}

export interface Overview {
  readonly now: string;
  /** The most urgent first. */
  readonly problems: readonly Problem[];
  readonly sources: readonly ShownSource[];
  /** Null while the queues' Redis does not answer; empty where this process has no queue. */
  readonly queues: readonly QueueDepth[] | null;
}

/** What a route answers that could not do what it was asked for. */
export interface Failure {
  /** What is wrong and what would do. */
  readonly error: string;
}
