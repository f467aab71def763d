import { SourceError } from '../source.ts';

/**
 * The failure of one region; the other regions are read all the same, whatever its Retry-After says.
 * @throws the error itself when it concerns every region (`limitsAll`) or is no SourceError
 */
export function failureOfRegion(error: unknown): SourceError {
  if (error instanceof SourceError && !error.limitsAll) return error;
  throw error;
}

/** What a run fails with that could read no region: the first `retry`, since that is tried again soonest, else the first. */
export function failureOfRegions(failures: readonly SourceError[]): SourceError | undefined {
  return failures.find(({ kind }) => kind === 'retry') ?? failures[0];
}
