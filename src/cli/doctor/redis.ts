import { otherDatabases, QUEUE_PREFIX } from '../../../workers/queues.ts';
import { type Configured, cacheRedis, queueRedis } from '../../app/connections.ts';
import { databaseUrl } from '../../config/settings.ts';
import { openStore } from '../../db/connection/connect.ts';
import type { ServerSetting } from '../../db/connection/server-problem.ts';
import { databaseName } from '../../db/lineage.ts';
import { messageOf } from '../../domain/errors.ts';
import { checkEviction, checkInfo, type RedisInfo, redisInfo } from '../../redis/check-server.ts';
import { isCluster, mastersOf, openRedis, redisReady } from '../../redis/redis.ts';
import { ago, count } from '../terminal/output.ts';
import { type Finding, ok, problem, problemOf, warning } from './finding.ts';

const READY_WITHIN_MS = 3000;
/** Share of memory above which a server without eviction soon rejects writes. */
const NEARLY_FULL = 0.9;

type Use = 'queues' | 'cache';

export async function checkRedis(config: Configured): Promise<Finding[]> {
  const queues = queueRedis(config);
  const cache = cacheRedis(config);
  if (queues.url === cache.url) return checkServer('Redis', queues, ['queues', 'cache']);
  const found = await Promise.all([
    checkServer('queues’ Redis', queues, ['queues']),
    checkServer('cache’s Redis', cache, ['cache']),
  ]);
  return found.flat();
}

async function checkServer(check: string, server: ServerSetting, uses: readonly Use[]): Promise<Finding[]> {
  const redis = openRedis(server.url, 'producer', () => {}, server.setting);
  try {
    await redisReady(redis, READY_WITHIN_MS);
    const servers = await Promise.all(mastersOf(redis).map(redisInfo));
    const found = servers.flatMap((info) =>
      redisFindings(check, server.setting, info, uses, isCluster(redis)),
    );
    // Masters of a cluster have equal findings: each is reported once.
    return [...new Map(found.map((finding) => [JSON.stringify(finding), finding])).values()];
  } catch (error) {
    return [problemOf(check, messageOf(error))];
  } finally {
    redis.disconnect();
  }
}

/**
 * Names the queues of the database, and other databases that have queues in the same Redis. Other checks report missing settings
 * and outages.
 */
export async function checkQueues(config: Configured, now: () => Date): Promise<Finding[]> {
  await using opened = new AsyncDisposableStack();
  try {
    const server = queueRedis(config);
    const store = opened.use(openStore({ url: databaseUrl(config), role: 'worker', connections: 1 }));
    const redis = openRedis(server.url, 'producer', () => {}, server.setting);
    opened.defer(() => redis.disconnect());
    await redisReady(redis, READY_WITHIN_MS);
    const own = await databaseName(store.db);
    const others = await otherDatabases(own, redis);
    const [last] = [...others.values()].sort().reverse();
    const shared =
      last === undefined
        ? 'no other database has queues in this Redis'
        : `${count(others.size, 'other database')} ${others.size === 1 ? 'has' : 'have'} queues in this Redis, last used ${ago(last, now())}; workers run only the jobs of their own database`;
    return [ok('queues', `the queues of this database are ${QUEUE_PREFIX}:${own}; ${shared}`)];
  } catch {
    return [];
  }
}

/** Returns findings about a server that answers. @param setting with its address */
export function redisFindings(
  check: string,
  setting: string,
  info: RedisInfo,
  uses: readonly Use[],
  asCluster = false,
): Finding[] {
  const { redis_version: version = '0', valkey_version: valkey, maxmemory_policy: policy } = info;
  const problems = [
    checkInfo(info, setting, asCluster),
    uses.includes('queues') ? checkEviction(info) : undefined,
  ];
  const found = problems.flatMap((each) => (each ? [problem(check, each.what, each.remedy)] : []));
  const most = Number(info.maxmemory ?? 0);
  const used = Number(info.used_memory ?? 0);
  if (most > 0 && policy === 'noeviction' && used > NEARLY_FULL * most) {
    const share = `${Math.round((100 * used) / most)} %`;
    found.push(
      warning(
        check,
        `${share} of its memory is used, and it evicts nothing: writes will fail`,
        'raise its maxmemory',
      ),
    );
  }
  if (info.rdb_last_bgsave_status === 'err' || info.aof_last_write_status === 'err') {
    found.push(
      problem(
        check,
        'it could not write to its disk, and refuses writes for that',
        'see its log and free its disk; or turn persistence off, Fleetbook needs none: CONFIG SET save ""',
      ),
    );
  }
  if (found.some(({ verdict }) => verdict === 'problem')) return found;
  const name = valkey === undefined ? `Redis ${version}` : `Valkey ${valkey}`;
  const evicts = policy === undefined ? '' : `, ${policy}`;
  return [ok(check, `${name} for ${uses.join(' and ')}${evicts}; ${persistenceOf(info)}`), ...found];
}

function persistenceOf({ aof_enabled: log, rdb_last_save_time: saved }: RedisInfo): string {
  if (log === '1') return 'it keeps an append-only file';
  if (log === undefined && saved === undefined) return 'it does not say what it keeps on disk';
  return 'it keeps no append-only file, and needs none';
}
