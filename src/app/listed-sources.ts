/** Configured and stored sources, as operators see them. Pure. */
import type { NamedSource } from '../config/named-sources.ts';
import type { StoredSource } from '../db/sources.ts';
import { nextSlots, scheduleInWords } from '../domain/schedule.ts';

/**
 * - `on`: configured, and its schedule runs it
 * - `disabled`: configured, and an operator has disabled it
 * - `not configured`: stored without a configuration here; its data is still published
 * - `retired`: stored without a configuration here; none of its data is published
 */
export type SourceState = 'on' | 'disabled' | 'not configured' | 'retired';

/** Times are RFC 3339, UTC. */
export interface ListedSource extends Omit<StoredSource, 'registeredAt'> {
  readonly state: SourceState;
  /** Five cron fields; null if the source is not configured here. */
  readonly schedule: string | null;
  readonly scheduleInWords: string | null;
  readonly watched: boolean;
  /** The next due times; empty if no schedule runs it. */
  readonly nextSlots: readonly string[];
  /** Null until a run or a worker registers it. */
  readonly registeredAt: string | null;
}

/** Lists configured sources, then those that are only stored. @param slots number of next slots of each */
export function listedSources(
  configured: readonly NamedSource[],
  stored: readonly StoredSource[],
  now: Date,
  slots: number,
): ListedSource[] {
  const byId = new Map(stored.map((source) => [source.id, source]));
  const named = new Set(configured.map(({ id }) => id));
  return [
    ...configured.map((source) => ofConfigured(source, byId.get(source.id), now, slots)),
    ...stored.filter(({ id }) => !named.has(id)).map(ofStored),
  ];
}

function ofConfigured(
  { id, kind, adapter, schedule }: NamedSource,
  stored: StoredSource | undefined,
  now: Date,
  slots: number,
): ListedSource {
  const disabled = stored?.disabled ?? null;
  return {
    id,
    kind,
    adapter: adapter.id,
    state: disabled === null ? 'on' : 'disabled',
    disabled,
    schedule,
    scheduleInWords: scheduleInWords(schedule),
    watched: 'watch' in adapter && adapter.watch !== undefined,
    nextSlots: disabled === null ? nextSlots(schedule, now, slots) : [],
    registeredAt: stored?.registeredAt ?? null,
    verifiedAt: stored?.verifiedAt ?? null,
    retiredAt: stored?.retiredAt ?? null,
  };
}

function ofStored(stored: StoredSource): ListedSource {
  return {
    ...stored,
    state: stored.retiredAt === null ? 'not configured' : 'retired',
    schedule: null,
    scheduleInWords: null,
    watched: false,
    nextSlots: [],
  };
}
