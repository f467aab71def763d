/** What the settings say about servers, and connections to them. */
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { BadSetting, type Settings } from './settings.ts';
import { openRedis, type RedisUse } from './store/redis.ts';

export interface Configured {
  readonly settings: Settings;
}

/** @throws BadSetting that says what to give, and that `up` would bring a database of its own. */
export function databaseUrl(config: Configured): string {
  const url = config.settings.DATABASE_URL;
  if (url) return url;
  throw new BadSetting(
    'DATABASE_URL is not set; give postgres://user:password@host/database, or use `fleetbook up`, which brings its own',
  );
}

export function cacheRedisUrl(config: Configured): string {
  return redisUrl(config, 'CACHE_REDIS_URL');
}

export function queueRedisUrl(config: Configured): string {
  return redisUrl(config, 'QUEUE_REDIS_URL');
}

function redisUrl(config: Configured, name: 'CACHE_REDIS_URL' | 'QUEUE_REDIS_URL'): string {
  const url = config.settings[name] ?? config.settings.REDIS_URL;
  if (url) return url;
  throw new BadSetting(
    `neither ${name} nor REDIS_URL is set; give redis://host:6379, or use \`fleetbook up\`, which brings its own`,
  );
}

/** Opens a connection that tells of trouble once, not at every attempt. */
export function openLoggedRedis(url: string, use: RedisUse, logger: Logger): Redis {
  let told = false;
  const redis = openRedis(url, use, (error) => {
    logger[told ? 'debug' : 'warn'](
      { use, code: (error as NodeJS.ErrnoException).code },
      `Redis: ${error.message}`,
    );
    told = true;
  });
  redis.on('ready', () => {
    if (told) logger.info({ use }, 'Redis is back');
    told = false;
  });
  return redis;
}
