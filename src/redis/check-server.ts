/** Finds a Redis that its setting does not fit, at the start, before commands fail. */
import type { Redis } from 'ioredis';
import type { Problem } from '../db/connection/server-problem.ts';
import { isAtLeast, OLDEST_REDIS } from '../domain/servers/redis-address.ts';
import { isCluster, mastersOf, type RedisClient } from './redis.ts';

export type RedisInfo = Readonly<Record<string, string>>;

export async function redisInfo(server: Redis): Promise<RedisInfo> {
  const text = await server.info();
  return Object.fromEntries(
    text.split(/\r?\n/).flatMap((line) => {
      const at = line.indexOf(':');
      return line.startsWith('#') || at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)]];
    }),
  );
}

/** @param mayEvict false for queues: an eviction loses jobs @throws the error of Redis */
export async function checkRedis(
  redis: RedisClient,
  setting: string,
  mayEvict: boolean,
): Promise<Problem | undefined> {
  const infos = await Promise.all(mastersOf(redis).map(redisInfo));
  for (const info of infos) {
    const found = checkInfo(info, setting, isCluster(redis)) ?? (mayEvict ? undefined : checkEviction(info));
    if (found) return found;
  }
  return undefined;
}

/** @param asCluster true if the server is used as a node of a cluster */
export function checkInfo(info: RedisInfo, setting: string, asCluster: boolean): Problem | undefined {
  const { redis_version: version, valkey_version: valkey } = info;
  if (version !== undefined && valkey === undefined && !isAtLeast(version, OLDEST_REDIS))
    return {
      what: `it is Redis ${version}`,
      remedy: `upgrade it to Redis ${OLDEST_REDIS} or newer, or name another server in ${setting}`,
    };
  if (!asCluster && info.cluster_enabled === '1')
    return {
      what: 'it is a node of a Redis Cluster, which has only a part of the keys',
      remedy: `write ${setting} as redis+cluster://host:port,host:port`,
    };
  if (asCluster && info.cluster_enabled === '0')
    return {
      what: 'it is no node of a Redis Cluster',
      remedy: `write ${setting} as redis://host:port`,
    };
  if (info.role === 'slave')
    return { what: 'it is a replica, which takes no writes', remedy: `name its primary in ${setting}` };
  return undefined;
}

export function checkEviction({ maxmemory_policy: policy }: RedisInfo): Problem | undefined {
  if (policy === undefined || policy === 'noeviction') return undefined;
  return {
    what: `its maxmemory-policy is ${policy}: it may lose jobs`,
    remedy: 'set maxmemory-policy to noeviction, or give the queues another server in QUEUE_REDIS_URL',
  };
}
