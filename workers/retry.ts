import type { SourceFailureKind } from '../src/sources/source.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** How an attempt failed; `internal` is anything but the source itself, e.g. a database that is away. */
export type FailureKind = SourceFailureKind | 'internal';

export interface FailedAttempt {
  readonly kind: FailureKind;
  /** How many attempts in a row have failed, this one included. */
  readonly failures: number;
  /** Milliseconds that this one took: what takes long is asked for the less often. */
  readonly tookMs: number;
  /** Milliseconds that the upstream asked to be left alone. */
  readonly retryAfterMs?: number | undefined;
  readonly now: Date;
  /** The next slot of the schedule, and the milliseconds between two of them. */
  readonly nextSlot: Date;
  readonly intervalMs: number;
}

/** What follows a failed attempt. */
export interface NextAttempt {
  /** When the same job is tried again; absent where the next slot takes over. */
  readonly at?: Date;
  /** Set where the upstream asked for more time than is left before the next slot. */
  readonly nextSlotNotBefore?: Date;
}

interface Backoff {
  readonly firstMs: number;
  /** How many times longer each further pause is. */
  readonly factor: number;
  /** Of the schedule's interval, but at least the first pause. */
  readonly mostShare: number;
  readonly mostMs: number;
}

/** Time heals it, as a rule soon. */
const UNWELL: Backoff = { firstMs: 15 * SECOND, factor: 2, mostShare: 1 / 10, mostMs: 15 * MINUTE };
/** As a rule somebody has to do something; but pages of maintenance look the same, and a file that is being replaced. */
const NOT_UNDERSTOOD: Backoff = { firstMs: 5 * MINUTE, factor: 4, mostShare: 1 / 4, mostMs: 6 * HOUR };

const BACKOFFS: Readonly<Record<FailureKind, Backoff | undefined>> = {
  retry: UNWELL,
  internal: UNWELL,
  invalid: NOT_UNDERSTOOD,
  gone: NOT_UNDERSTOOD,
  // Nothing changes before somebody changes a setting.
  misconfigured: undefined,
};

/**
 * When a source that failed is tried again. Pure: pauses grow until the next slot is due, which takes over; so there is
 * never more than one chain of attempts. A pause is at most as long as computed, and by chance up to half less.
 * @param random 0 up to but not including 1
 */
export function nextAttempt(failed: FailedAttempt, random: () => number): NextAttempt {
  const { now, nextSlot, retryAfterMs = 0 } = failed;
  const backoff = BACKOFFS[failed.kind];
  if (backoff === undefined) return {};
  const pause = Math.max(pauseOf(backoff, failed) * (0.5 + random() / 2), failed.tookMs, retryAfterMs);
  const at = new Date(now.getTime() + Math.ceil(pause));
  if (at < nextSlot) return { at };
  const until = new Date(now.getTime() + retryAfterMs);
  return retryAfterMs > 0 && until > nextSlot ? { nextSlotNotBefore: until } : {};
}

function pauseOf({ firstMs, factor, mostShare, mostMs }: Backoff, failed: FailedAttempt): number {
  const most = Math.max(firstMs, Math.min(mostMs, failed.intervalMs * mostShare));
  // Far beyond every cap; a larger power would be infinite.
  return Math.min(most, firstMs * factor ** Math.min(failed.failures - 1, 30));
}
