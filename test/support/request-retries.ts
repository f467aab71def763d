import { REQUEST_RETRIES, type RetryPolicy } from '../../src/sources/http/retries.ts';

/** Disables retries, for tests of runs whose upstream fails: the first failure ends the run without a pause. */
export const NO_RETRIES: RetryPolicy = { ...REQUEST_RETRIES, mostOfRequest: 0 };

/** Keeps the number of attempts, but without pauses. */
export const RETRIES_AT_ONCE: RetryPolicy = { ...REQUEST_RETRIES, firstPauseMs: 0 };
