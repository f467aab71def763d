/** Every write to the cache comes by here: only newer versions are set, and each is announced in the same script. */
import type { Result } from 'ioredis';
import type { RedisClient } from '../../redis/redis.ts';
import { FORMAT } from '../document/format.ts';
import { type CacheKeys, type DocumentName, documentId } from '../document/keys.ts';

/**
 * KEYS document, revision of its lane · ARGV value, version, format, seconds to live ('' = for good), channel, document id
 *
 * Returns 1 when set, 0 when what is stored is as new or newer. An equal version that was written back with an
 * expiry is made permanent by the publisher. A document of another format is replaced by the publisher alone: a
 * reader of an older release must not overwrite what a newer one understands.
 */
const SET_IF_NEWER = `
local head = redis.call('GETRANGE', KEYS[1], 0, 19)
local permanent = ARGV[4] == ''
if head ~= '' then
  if string.sub(head, 1, 4) == ARGV[3] .. ' ' then
    local stored = tonumber(string.sub(head, 5, 20))
    if stored and stored >= tonumber(ARGV[2]) then
      if permanent and stored == tonumber(ARGV[2]) then redis.call('PERSIST', KEYS[1]) end
      return 0
    end
  elseif not permanent then
    return 0
  end
end
if permanent then
  redis.call('SET', KEYS[1], ARGV[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[4])
end
local revision = redis.call('INCR', KEYS[2])
redis.call('PUBLISH', ARGV[5], revision .. ' ' .. ARGV[6] .. ' ' .. ARGV[2])
return 1
`;

/**
 * KEYS revision of the lane · ARGV channel, document id, version
 *
 * Tells of a version without setting it. A server that refuses writes runs it: it writes nothing.
 */
const ANNOUNCE = `
local revision = redis.call('GET', KEYS[1]) or '0'
return redis.call('PUBLISH', ARGV[1], revision .. ' ' .. ARGV[2] .. ' ' .. ARGV[3])
`;

/** KEYS document · ARGV its first bytes ('' for what is no string). Returns 1 when it is gone. */
const DROP_IF_SAME = `
local isString = redis.call('TYPE', KEYS[1]).ok == 'string'
if isString and redis.call('GETRANGE', KEYS[1], 0, #ARGV[1] - 1) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`;

/**
 * KEYS hash · ARGV field, stamp, field, stamp, …: moves stamps forward in time, never back. At the same time the greater
 * text counts: a source that was retired stays so.
 *
 * Returns how many moved.
 */
const VERIFY_IF_LATER = `
local function time(stamp) return string.match(stamp, ' (.*)$') or '' end
local moved = 0
for i = 1, #ARGV, 2 do
  local stored = redis.call('HGET', KEYS[1], ARGV[i])
  local stamp = ARGV[i + 1]
  local isLater = not stored or time(stamp) > time(stored) or (time(stamp) == time(stored) and stamp > stored)
  if isLater then
    redis.call('HSET', KEYS[1], ARGV[i], stamp)
    moved = moved + 1
  end
end
return moved
`;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    fleetbookSetIfNewer(
      document: string,
      revision: string,
      value: Buffer,
      version: string,
      format: string,
      seconds: string,
      channel: string,
      id: string,
    ): Result<number, Context>;
    fleetbookAnnounce(
      revision: string,
      channel: string,
      id: string,
      version: string,
    ): Result<number, Context>;
    fleetbookDropIfSame(document: string, firstBytes: Buffer): Result<number, Context>;
    fleetbookVerifyIfLater(hash: string, ...fieldsAndStamps: string[]): Result<number, Context>;
  }
}

/** Adds the scripts to a connection; called once for each client. */
export function withFence<T extends RedisClient>(redis: T): T {
  redis.defineCommand('fleetbookSetIfNewer', { numberOfKeys: 2, lua: SET_IF_NEWER });
  redis.defineCommand('fleetbookAnnounce', { numberOfKeys: 1, lua: ANNOUNCE });
  redis.defineCommand('fleetbookDropIfSame', { numberOfKeys: 1, lua: DROP_IF_SAME });
  redis.defineCommand('fleetbookVerifyIfLater', { numberOfKeys: 1, lua: VERIFY_IF_LATER });
  return redis;
}

/**
 * Sets a document unless the cache has one as new. `expireSeconds` is for write-backs by readers: after a flush the fence
 * knows no version, and a late write-back of an old one has to expire.
 * @returns true when it was set.
 */
export async function setIfNewer(
  redis: RedisClient,
  keys: CacheKeys,
  name: DocumentName,
  version: number,
  value: Buffer,
  expireSeconds?: number,
): Promise<boolean> {
  const id = documentId(name);
  const set = await redis.fleetbookSetIfNewer(
    keys.document(name),
    keys.revision(keys.laneOf(id)),
    value,
    String(version),
    FORMAT,
    expireSeconds === undefined ? '' : String(expireSeconds),
    keys.published,
    id,
  );
  return set === 1;
}

/**
 * Tells readers of a version that the cache did not take, e.g. because its memory is full: they ask Postgres for it. One that
 * has not heard of it, since it came later, hears of it when the publisher tries again.
 */
export async function announce(
  redis: RedisClient,
  keys: CacheKeys,
  name: DocumentName,
  version: number,
): Promise<void> {
  const id = documentId(name);
  await redis.fleetbookAnnounce(keys.revision(keys.laneOf(id)), keys.published, id, String(version));
}

/** The first line and some more: values that differ differ in their checksum. */
const FIRST_BYTES = 64;

/**
 * Removes a value that cannot be used, so that the fence does not compare with the version that it names. A value that
 * was written meanwhile stays.
 * @param value undefined for what is no string
 */
export async function dropValue(redis: RedisClient, key: string, value: Buffer | undefined): Promise<void> {
  await redis.fleetbookDropIfSame(key, value?.subarray(0, FIRST_BYTES) ?? Buffer.alloc(0));
}
