/** What operators are told of each source: one that is configured here, or one that is stored. Pure. */
import type { NamedSource } from '../config/named-sources.ts';
import type { StoredSource } from '../db/sources.ts';
import type { Disabling } from '../domain/disabled-source.ts';
import { nextSlots, scheduleInWords } from '../domain/schedule.ts';

/**
 * - `on`: it is configured, and its schedule runs it
 * - `disabled`: it is configured, and an operator has disabled it
 * - `not configured`: it is stored, and not in this configuration; what it has published is still there
 * - `retired`: the same, and nothing of it is published
 */
export type SourceState = 'on' | 'disabled' | 'not configured' | 'retired';

/** Times are RFC 3339, UTC. */
export interface ListedSource {
  readonly id: string;
  readonly kind: StoredSource['kind'];
  readonly adapter: string;
  readonly state: SourceState;
  readonly disabled: Disabling | null;
  /** Five cron fields, and what they mean; null for a source that is not configured here. */
  readonly schedule: string | null;
  readonly scheduleInWords: string | null;
  /** Whether changes are also heard of at once. */
  readonly watched: boolean;
  /** Its next due times; none while it is not run. */
  readonly nextSlots: readonly string[];
  /** When it was first known; null for one that never ran and that no worker has started with. */
  readonly registeredAt: string | null;
  /** When its last good run began to read. */
  readonly verifiedAt: string | null;
  readonly retiredAt: string | null;
}

/** Those that are configured, in that order, then those that are only stored. @param slots how many are told of each */
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
    watched: adapter.watched ?? false,
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
