/** Until when a version is supported: the release cycles of an engine, and the cycle of a cluster's version. Pure. */
import { type Engine, isEngine } from './engine.ts';

/** The products of endoflife.date, which a source of lifecycles reads. Other engines have no known end. */
export const PRODUCTS = {
  clickhouse: 'clickhouse',
  elasticsearch: 'elasticsearch',
  kafka: 'apache-kafka',
  mariadb: 'mariadb',
  mongodb: 'mongodb',
  mysql: 'mysql',
  opensearch: 'opensearch',
  postgresql: 'postgresql',
  redis: 'redis',
  valkey: 'valkey',
} as const satisfies Partial<Record<Engine, string>>;

export type LifecycleEngine = keyof typeof PRODUCTS;

function hasLifecycle(engine: string): engine is LifecycleEngine {
  return Object.hasOwn(PRODUCTS, engine);
}

/** Releases that are supported together, e.g. PostgreSQL 16. Dates are `YYYY-MM-DD`; the last day is still supported. */
export interface Cycle {
  readonly engine: LifecycleEngine;
  /** Version numbers with points: `16`, `8.4`, `26.3`. */
  readonly name: string;
  readonly releasedOn: string | null;
  /** End of the first phase, with more than security fixes; null without such a phase, or without a date. */
  readonly activeUntil: string | null;
  /** End of the community's support; null: none is announced, or it has passed on an unknown day. */
  readonly endOfLife: string | null;
  /** True if the support has ended, as its publisher states it. It counts only without a date. */
  readonly hasEnded: boolean;
  /** End of the paid support after that, where there is one. */
  readonly extendedUntil: string | null;
  /** The newest release of the cycle. */
  readonly latest: string | null;
}

/**
 * - `no_engine`, `no_version`: the source of the cluster does not state it;
 * - `engine_not_covered`: endoflife.date is not read for this engine;
 * - `no_lifecycles`: no source of lifecycles was read yet;
 * - `version_too_short`: cycles have more parts than the version, as for MySQL `8`, so that it may be one of several;
 * - `no_cycle`: no cycle has this version;
 * - `not_announced`: the cycle is supported, and its end has no date.
 */
export const LIFECYCLE_REASONS = [
  'no_engine',
  'no_version',
  'engine_not_covered',
  'no_lifecycles',
  'version_too_short',
  'no_cycle',
  'not_announced',
] as const;
export type LifecycleReason = (typeof LIFECYCLE_REASONS)[number];

export const LIFECYCLE_STATES = ['ended', 'supported', 'unknown'] as const;

/** What is known about the end of a cluster's version. */
export interface Lifecycle {
  readonly state: (typeof LIFECYCLE_STATES)[number];
  /** `YYYY-MM-DD`, the last supported day; null if it is unknown. */
  readonly endOfLife: string | null;
  /** Days from today to that day; negative after it. */
  readonly daysLeft: number | null;
  /** Who states the day: the provider that runs the cluster, or the source of lifecycles. */
  readonly statedBy: 'provider' | 'lifecycles' | null;
  readonly cycle: Cycle | null;
  /** Why the day is unknown. */
  readonly reason: LifecycleReason | null;
}

/** The columns of a cluster. */
export interface RunningSoftware {
  readonly engine: string | null;
  readonly version: string | null;
  readonly endOfLife: string | null;
}

/** Cycles with the numbers of their names, which are parsed once for all clusters. */
export type CyclesOfEngines = ReadonlyMap<
  string,
  readonly { readonly cycle: Cycle; readonly name: readonly number[] }[]
>;

/** A cycle without a number has no versions. */
export function byEngine(cycles: readonly Cycle[]): CyclesOfEngines {
  const named = cycles.map((cycle) => ({ cycle, name: versionParts(cycle.name) ?? [] }));
  return Map.groupBy(named, ({ cycle }) => cycle.engine);
}

/** Returns the day of a time in UTC, `YYYY-MM-DD`, as `lifecycleOf` takes it. */
export const dayOf = (time: Date): string => time.toISOString().slice(0, 10);

/**
 * Returns the end of a cluster's version. A day that the provider states has priority, since the provider ends its own service by
 * it, earlier or later than the community.
 * @param today `YYYY-MM-DD` in UTC
 */
export function lifecycleOf(software: RunningSoftware, cycles: CyclesOfEngines, today: string): Lifecycle {
  const found = cycleOf(software, cycles);
  const cycle = typeof found === 'string' ? null : found;
  if (software.endOfLife !== null) return dated(software.endOfLife, 'provider', cycle, today);
  if (typeof found === 'string') return unknown('unknown', null, found);
  if (found.endOfLife !== null) return dated(found.endOfLife, 'lifecycles', cycle, today);
  return found.hasEnded
    ? { ...unknown('ended', cycle, null), statedBy: 'lifecycles' }
    : unknown('supported', cycle, 'not_announced');
}

function dated(
  endOfLife: string,
  statedBy: Lifecycle['statedBy'],
  cycle: Cycle | null,
  today: string,
): Lifecycle {
  const daysLeft = Math.round((Date.parse(endOfLife) - Date.parse(today)) / 86_400_000);
  const state = daysLeft < 0 ? 'ended' : 'supported';
  return { state, endOfLife, daysLeft, statedBy, cycle, reason: null };
}

function unknown(state: Lifecycle['state'], cycle: Cycle | null, reason: LifecycleReason | null): Lifecycle {
  return { state, endOfLife: null, daysLeft: null, statedBy: null, cycle, reason };
}

/**
 * Returns the cycle whose name the version begins with, part by part: 16.4 is of 16, 9.6.24 of 9.6, 8.10.1 of 8.10 and never of
 * 8.1. The longest name has priority. A version is never completed: `8` may be any of 8.0 to 8.4.
 */
function cycleOf(
  { engine, version }: RunningSoftware,
  cycles: CyclesOfEngines,
): Cycle | Exclude<LifecycleReason, 'not_announced'> {
  if (engine === null) return 'no_engine';
  if (!isEngine(engine) || !hasLifecycle(engine)) return 'engine_not_covered';
  if (version === null) return 'no_version';
  const ofEngine = cycles.get(engine);
  if (ofEngine === undefined) return 'no_lifecycles';
  const parts = versionParts(version);
  if (parts === undefined) return 'no_cycle';
  const isPart = (short: readonly number[], long: readonly number[]) =>
    short.every((part, place) => long[place] === part);
  let best: Cycle | undefined;
  let most = 0;
  let isShort = false;
  for (const { cycle, name } of ofEngine) {
    if (name.length > most && isPart(name, parts)) {
      best = cycle;
      most = name.length;
    }
    isShort ||= name.length > parts.length && isPart(parts, name);
  }
  return best ?? (isShort ? 'version_too_short' : 'no_cycle');
}

/** `v8.4.8-1` → 8, 4, 8; undefined for a text that does not begin with numbers. */
export function versionParts(version: string): readonly number[] | undefined {
  const numbers = /^v?(\d{1,9}(?:\.\d{1,9}){0,9})(?![\p{L}\d.])/u.exec(version)?.[1];
  return numbers?.split('.').map(Number);
}

/** Compares versions by number: 8.10 is after 8.9. Texts without numbers come last. */
export function compareVersions(one: string, other: string): number {
  const [a, b] = [versionParts(one), versionParts(other)];
  if (!a || !b) return Number(!a) - Number(!b) || (one < other ? -1 : Number(one > other));
  for (let place = 0; place < Math.max(a.length, b.length); place += 1) {
    const difference = (a[place] ?? -1) - (b[place] ?? -1);
    if (difference !== 0) return difference;
  }
  return one < other ? -1 : Number(one > other);
}

export const LIFECYCLE_DAYS = { least: 0, most: 3650, standard: 180 } as const;

/** Returns true for a version that has ended, or ends within the days. */
export function isEnding({ state, daysLeft }: Lifecycle, within: number = LIFECYCLE_DAYS.standard): boolean {
  return state === 'ended' || (daysLeft !== null && daysLeft <= within);
}

/** Returns the name of who states the end: the provider of the cluster, or endoflife.date. */
export function nameOfStater(statedBy: Lifecycle['statedBy'], provider: string): string | null {
  return statedBy === 'lifecycles' ? 'endoflife.date' : statedBy && provider;
}

/** Orders what needs attention first: ended, then by the end, then unknown, then without an announced end. */
export function urgency({ state, endOfLife }: Lifecycle): string {
  if (state === 'unknown') return '2';
  return state === 'ended' && endOfLife === null ? '0' : endOfLife === null ? '3' : `1 ${endOfLife}`;
}
