import { Counter, Gauge, type Registry } from 'prom-client';

/** What a reader counts of its copy on disk. */
export interface DiskCopyCounts {
  readonly bytes: number;
  readonly documents: number;
  readonly written: number;
  readonly failures: ReadonlyMap<string, number>;
}

/** An alert hears of the first failure only where the count was there before. */
const REASONS = ['damaged', 'failed', 'full', 'overflow', 'slow'];

/** Adds the series of a copy on disk to a registry. */
export function addDiskCopySeries(registry: Registry, counts: DiskCopyCounts): void {
  const registers = [registry];
  // Several processes share one folder: what they tell must not be added up.
  new Gauge({
    name: 'fleetbook_disk_copy_bytes',
    help: 'Bytes of the copy in SNAPSHOT_DIR that are in use, as of the last five minutes',
    registers,
    aggregator: 'max',
    collect() {
      this.set(counts.bytes);
    },
  });
  new Gauge({
    name: 'fleetbook_disk_copy_documents',
    help: 'Documents in the copy in SNAPSHOT_DIR, as of the last five minutes',
    registers,
    aggregator: 'max',
    collect() {
      this.set(counts.documents);
    },
  });
  new Counter({
    name: 'fleetbook_disk_copy_written_total',
    help: 'Documents that this process has written to its copy on disk, or has said to be known still',
    registers,
    collect() {
      this.reset();
      this.inc(counts.written);
    },
  });
  new Counter({
    name: 'fleetbook_disk_copy_failures_total',
    help: 'What the copy on disk did not take or give, by reason; damaged: a part was not as it was written, and was removed',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const reason of REASONS) this.inc({ reason }, counts.failures.get(reason) ?? 0);
    },
  });
}
