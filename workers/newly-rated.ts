import type { Logger } from 'pino';
import { requestFollowing } from '../src/app/actions/source.ts';
import type { Worker } from '../src/app/worker.ts';
import type { Config } from '../src/config/config.ts';
import { missingRates } from '../src/db/quarantine.ts';
import { currentPricing } from '../src/sync/currency.ts';

/** Requests a run of each source with machines that lacked an exchange rate which exists now. */
export async function requestNewlyRated(config: Config, { store }: Pick<Worker, 'store'>): Promise<void> {
  const missing = await missingRates(store.sql);
  if (missing.size === 0) return;
  const { currency, rates } = await currentPricing(store, config.settings, new Date());
  const isKnown = (code: string) => code === currency || rates[code] !== undefined;
  for (const source of config.sources)
    if (missing.get(source.id)?.some(isKnown)) await requestFollowing(store.db, source);
}

/** Converts all prices to the configured currency at a worker's start, because the next run may be a day away. */
export async function adoptCurrency(config: Config, worker: Worker, logger: Logger): Promise<void> {
  const logged = (message: string) => (error: unknown) => logger.debug({ err: error }, message);
  await worker
    .adoptCurrency()
    .catch(
      logged('the prices could not be converted to the configured currency; the next run converts them'),
    );
  await requestNewlyRated(config, worker).catch(
    logged('runs for new exchange rates could not be requested; the sources wait for their slots'),
  );
}
