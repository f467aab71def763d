import { Redis } from 'ioredis';
import { readLineage } from '../../../src/db/reads/lineage.ts';
import { CacheKeys } from '../../../src/snapshot/document/keys.ts';
import type { ConsoleScene } from './scene.ts';

/** A reader that answers 300 requests well and 15 badly every ten seconds, and a worker that ended some minutes ago. */
export async function reportsOfAnHour({ worker, config }: ConsoleScene): Promise<void> {
  const key = new CacheKeys(await readLineage(worker.store.sql), 1).reports;
  const redis = new Redis(config.settings.REDIS_URL ?? '');
  const [now] = await redis.time();
  const durations = Array.from({ length: 17 }, (_, i) => (i === 3 ? 315 : 0));
  const common = { process: 'a', seconds: 10 };
  const answers = { statuses: [300, 0, 0, 15], durations, tiers: { memory: 290, redis: 8, postgres: 2 } };
  const seen = { lagSeconds: 0, dirty: 0, waiting: { sync: 2 } };
  for (let ago = 3600; ago >= 0; ago -= 10) {
    const add = (report: object) =>
      redis.xadd(
        key,
        `${(Number(now) - ago) * 1000}-*`,
        'report',
        JSON.stringify({ ...common, number: ago, ...report }),
      );
    await add({ kind: 'reader', ...answers });
    if (ago > 300) await add({ kind: 'worker', process: 'w', ...seen });
  }
  redis.disconnect();
}
