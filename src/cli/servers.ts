/** The database and the Redis that `up` runs with: those that the environment names, else some of its own. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Closing } from '../app/disposer.ts';
import type { Config } from '../config/config.ts';
import { acquireRedisServer } from '../dev/acquire-redis.ts';
import { startEmbeddedPostgres } from '../dev/postgres.ts';
import { startRedis } from '../dev/redis.ts';
import type { Exit } from '../processes/server-process.ts';

export interface Servers {
  readonly databaseUrl: string;
  readonly queueRedisUrl: string;
  readonly cacheRedisUrl: string;
}

type Say = (line: string) => void;

/** Starts what is not given; `closing` stops it again. */
export async function startServers(
  config: Config,
  folder: string,
  closing: Closing,
  say: Say,
  logger: Logger,
): Promise<Servers> {
  const { settings } = config;
  const databaseUrl = settings.DATABASE_URL ?? (await ownPostgres(folder, closing, say, logger));
  const queue = settings.QUEUE_REDIS_URL ?? settings.REDIS_URL;
  const cache = settings.CACHE_REDIS_URL ?? settings.REDIS_URL;
  const own = queue && cache ? undefined : await ownRedis(closing, say, logger);
  return { databaseUrl, queueRedisUrl: queue ?? own ?? '', cacheRedisUrl: cache ?? own ?? '' };
}

async function ownPostgres(folder: string, closing: Closing, say: Say, logger: Logger): Promise<string> {
  const dataDir = join(folder, 'postgres');
  const first = await startEmbeddedPostgres({ dataDir });
  say(`PostgreSQL on port ${first.port}, data in ${dataDir}`);
  keepRunning(
    'PostgreSQL',
    first,
    () => startEmbeddedPostgres({ dataDir, port: first.port }),
    closing,
    logger,
  );
  return first.url;
}

async function ownRedis(closing: Closing, say: Say, logger: Logger): Promise<string> {
  const binary = await acquireRedisServer({ say });
  const first = await startRedis({ binary });
  const { port, password } = first;
  say(`Redis (${binary.name} ${binary.version}) on port ${port}`);
  keepRunning('Redis', first, () => startRedis({ binary, port, password }), closing, logger);
  return first.url;
}

interface Server extends AsyncDisposable {
  readonly exited: Promise<Exit>;
}

const RESTART_AFTER_MS = 2000;

/** Starts a server again, on the port that everybody knows, when it ends without having been told to. */
function keepRunning(
  name: string,
  first: Server,
  start: () => Promise<Server>,
  closing: Closing,
  logger: Logger,
): void {
  const stopping = new AbortController();
  let server: Server | undefined = first;
  const watching = (async () => {
    while (!stopping.signal.aborted) {
      if (server) {
        await server.exited;
        server = undefined;
        if (stopping.signal.aborted) return;
        logger.error({ server: name }, `${name} ended; it is started again`);
      }
      await sleep(RESTART_AFTER_MS, undefined, { signal: stopping.signal }).catch(() => {});
      if (stopping.signal.aborted) return;
      try {
        server = await start();
        logger.info({ server: name }, `${name} runs again`);
      } catch (error) {
        logger.error({ err: error, server: name }, `${name} could not be started; it is tried again`);
      }
    }
  })();
  closing.defer(async () => {
    stopping.abort();
    await server?.[Symbol.asyncDispose]();
    await watching;
  });
}
