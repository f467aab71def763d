import { REQUEST_RETRIES, type RetryPolicy } from '../../src/sources/http/retries.ts';

/** For tests of what becomes of a run whose upstream fails: its first failure ends it, without a pause. */
export const NO_RETRIES: RetryPolicy = { ...REQUEST_RETRIES, mostOfRequest: 0 };

/** As many attempts as ever, one at once after the other. */
export const RETRIES_AT_ONCE: RetryPolicy = { ...REQUEST_RETRIES, firstPauseMs: 0 };
