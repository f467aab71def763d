import type { SourceFailureKind } from '../src/sources/source.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

export interface FailedAttempt {
  /** `internal` is any failure outside the source, e.g. of Postgres. `incomplete`: the run read only some of the regions. */
  readonly kind: SourceFailureKind | 'internal' | 'incomplete';
  /** Consecutive failed or incomplete attempts, including this one. */
  readonly failures: number;
  /** Duration of this attempt (ms). The pause is never shorter. */
  readonly tookMs: number;
  /** The upstream's `Retry-After` (ms). */
  readonly retryAfterMs?: number | undefined;
  readonly now: Date;
  readonly nextSlot: Date;
  readonly intervalMs: number;
}

interface NextAttempt {
  /** The next attempt of the same job; absent if the next slot takes over. */
  readonly at?: Date;
  /** Set if the upstream's `Retry-After` ends after the next slot. */
  readonly nextSlotNotBefore?: Date;
}

interface Backoff {
  readonly firstMs: number;
  readonly factor: number;
  /** Longest pause as a share of the schedule's interval. It is never shorter than the first pause. */
  readonly mostShare: number;
  readonly mostMs: number;
}

/** For failures that usually end soon without help. */
const TEMPORARY: Backoff = { firstMs: 15 * SECOND, factor: 2, mostShare: 1 / 10, mostMs: 15 * MINUTE };
/** For failures that usually need an operator. A maintenance page or a half-replaced file looks the same and ends alone. */
const UNEXPECTED: Backoff = { firstMs: 5 * MINUTE, factor: 4, mostShare: 1 / 4, mostMs: 6 * HOUR };

const BACKOFFS: Readonly<Record<FailedAttempt['kind'], Backoff | undefined>> = {
  retry: TEMPORARY,
  internal: TEMPORARY,
  invalid: UNEXPECTED,
  gone: UNEXPECTED,
  incomplete: UNEXPECTED,
  // An operator has to change a setting first.
  misconfigured: undefined,
};

/**
 * Returns the time of the next attempt of a failed or incomplete run. Pauses grow until the next slot is due, which takes over: a
 * source never has two chains of attempts. Jitter shortens a pause by up to one half.
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
  // The exponent is capped, because a larger power would be infinite.
  return Math.min(most, firstMs * factor ** Math.min(failed.failures - 1, 30));
}
