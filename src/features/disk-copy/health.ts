import type { Logger } from 'pino';
import { Counter, type Registry } from 'prom-client';
import { messageOf } from '../../domain/errors.ts';
import { Unavailable } from '../../snapshot/document/answer.ts';
import { Semaphore } from '../../snapshot/read/postgres/semaphore.ts';
import { DamagedFile } from './files.ts';

const FAILURES = ['damaged', 'failed', 'full', 'overflow', 'slow'] as const;
type Failure = (typeof FAILURES)[number];

/** Milliseconds that a read may take if nothing else answers. */
const READ_MS = 2000;
/** Reads at once: a disk that hangs must leave threads for the rest of the process. */
const READS = 2;
const WAITING_READS = 256;

/** Limits and counts the work of a disk copy. Logs its first failure, and when it works again. */
export class CopyHealth {
  readonly written = new Counter({
    name: 'fleetbook_disk_copy_written_total',
    help: 'Documents that this process has written to its disk copy, new ones and confirmed ones',
    registers: [],
  });
  readonly failures = new Counter({
    name: 'fleetbook_disk_copy_failures_total',
    help: 'Failed reads and writes of the disk copy by reason; damaged: a file had a wrong checksum and was removed',
    labelNames: ['reason'],
    registers: [],
  });
  readonly #logger: Logger;
  readonly #reads = new Semaphore({ atOnce: READS, waitingAtMost: WAITING_READS, deadlineMs: READ_MS });
  #isReported = false;
  isSlow = false;

  constructor(logger: Logger) {
    this.#logger = logger;
    // An alert notices the first failure only if the series exists before it.
    for (const reason of FAILURES) this.failures.inc({ reason }, 0);
  }

  addMetrics(registry: Registry): void {
    for (const metric of [this.written, this.failures]) registry.registerMetric<string>(metric);
  }

  async run<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      const found = await this.#reads.run(work);
      this.isSlow = false;
      return found;
    } catch (error) {
      this.failed(error);
      return undefined;
    }
  }

  /** Does work that blocks, unless the disk is known to be slow. Returns false if it was not done. */
  runNow(work: () => void): boolean {
    if (this.isSlow) return false;
    try {
      work();
      return true;
    } catch (error) {
      this.failed(error);
      return false;
    }
  }

  failed(error: unknown): void {
    const reason = reasonOf(error);
    this.failures.inc({ reason });
    if (this.#isReported) return;
    this.#isReported = true;
    const why = reason === 'slow' ? 'the disk did not answer in time' : messageOf(error);
    this.#logger.warn({ reason, why }, 'the copy in SNAPSHOT_DIR cannot be used; serving goes on without it');
  }

  succeeded(): void {
    if (this.#isReported) this.#logger.info('the copy in SNAPSHOT_DIR is written again');
    this.#isReported = false;
    this.isSlow = false;
  }
}

function reasonOf(error: unknown): Failure {
  if (error instanceof DamagedFile) return 'damaged';
  if (error instanceof Unavailable) return 'slow';
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT' ? 'full' : 'failed';
}
