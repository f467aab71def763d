/** What the settings say about servers, and connections to them. */
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { BadSetting, type Configured, databaseUrl } from '../config/settings.ts';
import { redisProblem, type ServerSetting } from '../db/connection/server-problem.ts';
import { primaryAmong } from '../lib/postgres-address.ts';
import { redisMisfit } from '../redis/misfit.ts';
import { openRedis, type RedisClient, type RedisUse } from '../redis/redis.ts';

export { type Configured, databaseUrls } from '../config/settings.ts';

/** Where readers read: their own user, where they have one. */
export function readerDatabase(config: Configured): ServerSetting {
  const url = config.settings.READER_DATABASE_URL;
  if (url) return { setting: 'READER_DATABASE_URL', url };
  return { setting: 'DATABASE_URL', url: databaseUrl(config) };
}

/**
 * Where readers ask for what a replica does not have yet: undefined where all they read is in the one database.
 * `READER_DATABASE_URL` alone may name the primary among its hosts.
 */
export function readerPrimary({ settings }: Configured): ServerSetting | undefined {
  const { READER_DATABASE_URL: reader, DATABASE_URL: url } = settings;
  if (reader === undefined || reader === url) return undefined;
  if (url !== undefined) return { setting: 'DATABASE_URL', url };
  const primary = primaryAmong(reader);
  return primary === undefined ? undefined : { setting: 'READER_DATABASE_URL', url: primary };
}

export function cacheRedis(config: Configured): ServerSetting {
  return redisOf(config, 'CACHE_REDIS_URL');
}

export function queueRedis(config: Configured): ServerSetting {
  return redisOf(config, 'QUEUE_REDIS_URL');
}

function redisOf(config: Configured, name: 'CACHE_REDIS_URL' | 'QUEUE_REDIS_URL'): ServerSetting {
  const { [name]: own, REDIS_URL: shared } = config.settings;
  if (own) return { setting: name, url: own };
  if (shared) return { setting: 'REDIS_URL', url: shared };
  throw new BadSetting(
    `neither ${name} nor REDIS_URL is set; give redis://host:6379, or use \`fleetbook up\`, which brings its own`,
  );
}

/** Opens a connection that tells of trouble once, not at every attempt. */
export function openLoggedRedis(server: ServerSetting, use: 'subscriber', logger: Logger): Redis;
export function openLoggedRedis(server: ServerSetting, use: RedisUse, logger: Logger): RedisClient;
export function openLoggedRedis(server: ServerSetting, use: RedisUse, logger: Logger): RedisClient {
  let told = false;
  const onError = (error: Error) => {
    const { code } = error as NodeJS.ErrnoException;
    const why = redisProblem(error, server) ?? `Redis: ${error.message}`;
    logger[told ? 'debug' : 'warn']({ use, code, setting: server.setting }, why);
    told = true;
  };
  const redis = openRedis(server.url, use, onError, server.setting);
  redis.on('ready', () => {
    if (told) logger.info({ use }, 'Redis is back');
    told = false;
    if (use === 'reader' || use === 'publisher') void tellMisfit(redis, server.setting, logger);
  });
  return redis;
}

/** The cache may be wrong as long as it likes, since everything is in PostgreSQL; somebody should know. */
async function tellMisfit(redis: RedisClient, setting: string, logger: Logger): Promise<void> {
  const misfit = await redisMisfit(redis, setting, true).catch(() => undefined);
  if (misfit) logger.error({ setting }, `the cache cannot be used: ${misfit.what}; ${misfit.remedy}`);
}
