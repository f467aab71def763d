import type { Logger } from 'pino';
import { Unavailable } from '../../snapshot/document/answer.ts';
import { DamagedFile } from './sealed-files.ts';

type Failure = 'damaged' | 'failed' | 'full' | 'overflow' | 'slow';

/** Counted for the metrics. */
export interface DiskCopyCounts {
  bytes: number;
  documents: number;
  written: number;
  readonly failures: Map<Failure, number>;
}

/** Counts failures of a disk copy, and logs the first one until the copy works again. */
export class CopyHealth {
  readonly counts: DiskCopyCounts = { bytes: 0, documents: 0, written: 0, failures: new Map() };
  readonly #logger: Logger;
  #isReported = false;
  /** True from a read that took too long until something works. */
  isSlow = false;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  failed(error: unknown): void {
    const reason = reasonOf(error);
    this.count(reason);
    if (this.#isReported) return;
    this.#isReported = true;
    this.#logger.warn(
      { reason, why: error instanceof Error ? error.message : String(error) },
      'the copy in SNAPSHOT_DIR cannot be used; serving goes on without it',
    );
  }

  /** Everything is written. */
  succeeded(): void {
    if (this.#isReported) this.#logger.info('the copy in SNAPSHOT_DIR is written again');
    this.#isReported = false;
    this.isSlow = false;
  }

  count(reason: Failure): void {
    this.counts.failures.set(reason, (this.counts.failures.get(reason) ?? 0) + 1);
  }
}

function reasonOf(error: unknown): Failure {
  if (error instanceof DamagedFile) return 'damaged';
  if (error instanceof Unavailable) return 'slow';
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT' ? 'full' : 'failed';
}
