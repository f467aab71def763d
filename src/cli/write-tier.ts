import { composeWriteTier, type WriteTier } from '../compose-write.ts';
import { type Config, type Environment, readConfig } from '../config.ts';
import { openLogger } from '../log.ts';
import { redisReady } from '../store/redis.ts';

/** What a command that writes needs: the configuration, and the database and the cache opened. */
export function openWriteTier(env: Environment): { config: Config; tier: WriteTier } {
  const config = readConfig(env);
  const logger = openLogger({ LOG_LEVEL: env.LOG_LEVEL === 'debug' ? 'debug' : 'error' }, 'cli');
  return { config, tier: composeWriteTier(config, logger) };
}

/** Publishes what a command changed. False when the cache is away: a worker's next round sends it. */
export async function publishNow(tier: WriteTier): Promise<boolean> {
  try {
    await redisReady(tier.cache, 2000);
    await tier.publisher.publishDirty();
    return true;
  } catch {
    return false;
  }
}
