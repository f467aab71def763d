import type { Logger } from 'pino';
import { BadSetting, type Configured, databaseUrl } from '../config/settings.ts';
import { redisProblem, type ServerSetting } from '../db/connection/server-problem.ts';
import { checkRedis } from '../redis/check-server.ts';
import { openRedis, type RedisClient, type RedisUse } from '../redis/redis.ts';

export { type Configured, databaseUrls } from '../config/settings.ts';

export function readerDatabase(config: Configured): ServerSetting {
  const url = config.settings.READER_DATABASE_URL;
  if (url) return { setting: 'READER_DATABASE_URL', url };
  return { setting: 'DATABASE_URL', url: databaseUrl(config) };
}

/** Returns the primary, if it is another server: readers use it when their replica is behind. */
export function readerPrimary({ settings }: Configured): ServerSetting | undefined {
  const { READER_DATABASE_URL: reader, DATABASE_URL: url } = settings;
  if (reader === undefined || url === undefined || reader === url) return undefined;
  return { setting: 'DATABASE_URL', url };
}

export const cacheRedis = (config: Configured): ServerSetting => redisOf(config, 'CACHE_REDIS_URL');
export const queueRedis = (config: Configured): ServerSetting => redisOf(config, 'QUEUE_REDIS_URL');

function redisOf(config: Configured, name: 'CACHE_REDIS_URL' | 'QUEUE_REDIS_URL'): ServerSetting {
  const { [name]: own, REDIS_URL: shared } = config.settings;
  if (own) return { setting: name, url: own };
  if (shared) return { setting: 'REDIS_URL', url: shared };
  throw new BadSetting(
    `neither ${name} nor REDIS_URL is set; set redis://host:6379, or use \`fleetbook up\`, which starts one`,
  );
}

/** Opens a connection. Logs a problem once as a warning, and its further attempts at debug. */
export function openLoggedRedis(server: ServerSetting, use: RedisUse, logger: Logger): RedisClient {
  let isLogged = false;
  const onError = (error: Error) => {
    const { code } = error as NodeJS.ErrnoException;
    const why = redisProblem(error, server) ?? `Redis: ${error.message}`;
    logger[isLogged ? 'debug' : 'warn']({ use, code, setting: server.setting }, why);
    isLogged = true;
  };
  const redis = openRedis(server.url, use, onError, server.setting);
  redis.on('ready', () => {
    if (isLogged) logger.info({ use }, 'Redis is back');
    isLogged = false;
    if (use === 'reader' || use === 'publisher') void logProblem(redis, server.setting, logger);
  });
  return redis;
}

/** An unusable cache only costs time, since PostgreSQL has everything. An operator should know. */
async function logProblem(redis: RedisClient, setting: string, logger: Logger): Promise<void> {
  const problem = await checkRedis(redis, setting, true).catch(() => undefined);
  if (problem) logger.error({ setting }, `the cache cannot be used: ${problem.what}; ${problem.remedy}`);
}
