/** PostgreSQL and Redis of `up`: those of the environment, else servers that it starts. */
import { join } from 'node:path';
import type { Configured } from '../../config/settings.ts';
import { acquirePostgres } from '../../dev/download-postgres.ts';
import { acquireRedisServer } from '../../dev/install-redis.ts';
import { startEmbeddedPostgres } from '../../dev/postgres.ts';
import { startRedis } from '../../dev/redis.ts';
import { serverLife } from '../../processes/server-process.ts';
import type { Supervisor } from '../../processes/supervisor.ts';

export interface Servers {
  readonly databaseUrl: string;
  readonly queueRedisUrl: string;
  readonly cacheRedisUrl: string;
}

interface Starting {
  readonly supervisor: Supervisor;
  readonly notify: (line: string) => void;
}

/** Starts the servers that the settings do not name. The supervisor restarts them on the same port. */
export async function startServers(
  { settings }: Configured,
  folder: string,
  starting: Starting,
): Promise<Servers> {
  const databaseUrl = settings.DATABASE_URL ?? (await ownPostgres(folder, starting));
  const queue = settings.QUEUE_REDIS_URL ?? settings.REDIS_URL;
  const cache = settings.CACHE_REDIS_URL ?? settings.REDIS_URL;
  const own = queue && cache ? '' : await ownRedis(starting);
  return { databaseUrl, queueRedisUrl: queue ?? own, cacheRedisUrl: cache ?? own };
}

async function ownPostgres(folder: string, { supervisor, notify }: Starting): Promise<string> {
  const dataDir = join(folder, 'postgres');
  let url = '';
  let same: { readonly port?: number } = {};
  const binaries = await acquirePostgres({ folder: join(folder, 'postgres-programs'), notify });
  const start = async () => {
    const server = await startEmbeddedPostgres({ dataDir, binaries, ...same });
    same = { port: server.port };
    ({ url } = server);
    return server;
  };
  await supervisor.start('PostgreSQL', () => serverLife(start), 1);
  notify(`PostgreSQL on port ${same.port}, data in ${dataDir}`);
  return url;
}

async function ownRedis({ supervisor, notify }: Starting): Promise<string> {
  const binary = await acquireRedisServer({ notify });
  let url = '';
  let same: { readonly port?: number; readonly password?: string } = {};
  const start = async () => {
    const server = await startRedis({ binary, ...same });
    const { port, password } = server;
    same = { port, password };
    ({ url } = server);
    return server;
  };
  await supervisor.start('Redis', () => serverLife(start), 1);
  notify(`Redis (${binary.name} ${binary.version}) on port ${same.port}`);
  return url;
}
