import type { Queue } from 'bullmq';
import type { Logger } from 'pino';
import { addRun, type SyncJob } from '../src/app/actions/source.ts';
import type { Worker } from '../src/app/worker.ts';
import type { Config } from '../src/config/config.ts';
import { missingRates } from '../src/db/quarantine.ts';
import { latestSlot } from '../src/domain/schedule.ts';
import { currentPricing } from '../src/sync/currency.ts';

/** Enqueues a run of each source with machines that lacked an exchange rate which exists now. */
export async function enqueueNewlyRated(
  config: Config,
  { store }: Pick<Worker, 'store'>,
  queue: Queue<SyncJob>,
): Promise<void> {
  const missing = await missingRates(store.sql);
  if (missing.size === 0) return;
  const now = new Date();
  const { currency, rates } = await currentPricing(store, config.settings, now);
  const isKnown = (code: string) => code === currency || rates[code] !== undefined;
  for (const { id, schedule } of config.sources) {
    if (!missing.get(id)?.some(isKnown)) continue;
    await addRun(queue, { sourceId: id, slot: latestSlot(schedule, now) }, 'rated');
  }
}

/** Converts all prices to the configured currency at a worker's start, because the next run may be a day away. */
export async function adoptCurrency(
  config: Config,
  worker: Worker,
  queue: Queue<SyncJob>,
  logger: Logger,
): Promise<void> {
  const logged = (message: string) => (error: unknown) => logger.debug({ err: error }, message);
  await worker
    .adoptCurrency()
    .catch(
      logged('the prices could not be converted to the configured currency; the next run converts them'),
    );
  await enqueueNewlyRated(config, worker, queue).catch(
    logged('runs for new exchange rates could not be enqueued; the sources wait for their slots'),
  );
}
