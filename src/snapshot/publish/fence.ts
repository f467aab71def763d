/** All writes to the cache. A script sets a document only if it is newer, and announces it at once. */
import type { Result } from 'ioredis';
import type { RedisClient } from '../../redis/redis.ts';
import { FORMAT } from '../document/format.ts';
import { type CacheKeys, type DocumentName, documentId } from '../document/keys.ts';

/**
 * KEYS document, revision of its lane · ARGV value, version, format, seconds to live ('' = no expiry), channel, document id
 *
 * Returns 1 if it set the document, 0 if the cache has the same or a newer version. The publisher makes a reader's write-back
 * permanent. Only the publisher replaces another format: a reader of an older release must not overwrite a newer format.
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
 * Announces a version without setting it. It writes nothing, so a server that rejects writes runs it.
 */
const ANNOUNCE = `
local revision = redis.call('GET', KEYS[1]) or '0'
return redis.call('PUBLISH', ARGV[1], revision .. ' ' .. ARGV[2] .. ' ' .. ARGV[3])
`;

/** KEYS document · ARGV its first bytes ('' for a key of another type). Returns 1 if it deleted the key. */
const DROP_IF_SAME = `
local isString = redis.call('TYPE', KEYS[1]).ok == 'string'
if isString and redis.call('GETRANGE', KEYS[1], 0, #ARGV[1] - 1) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`;

/**
 * KEYS hash · ARGV field, stamp, field, stamp, …: moves stamps forward in time, never back. For equal times the greater text
 * wins, so that a retired source stays retired.
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

/** Adds the scripts to a client. */
export function withFence<T extends RedisClient>(redis: T): T {
  redis.defineCommand('fleetbookSetIfNewer', { numberOfKeys: 2, lua: SET_IF_NEWER });
  redis.defineCommand('fleetbookAnnounce', { numberOfKeys: 1, lua: ANNOUNCE });
  redis.defineCommand('fleetbookDropIfSame', { numberOfKeys: 1, lua: DROP_IF_SAME });
  redis.defineCommand('fleetbookVerifyIfLater', { numberOfKeys: 1, lua: VERIFY_IF_LATER });
  return redis;
}

/**
 * Sets a document unless the cache has the same or a newer version. Returns true if it was set.
 * @param expireSeconds for readers' write-backs: after a flush the fence has no version, so a late old one has to expire
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

/** Announces a version that the cache rejected, e.g. because its memory is full. Readers then read it from Postgres. */
export async function announce(
  redis: RedisClient,
  keys: CacheKeys,
  name: DocumentName,
  version: number,
): Promise<void> {
  const id = documentId(name);
  await redis.fleetbookAnnounce(keys.revision(keys.laneOf(id)), keys.published, id, String(version));
}

/** More than the first line, which contains the checksum: different values differ here. */
const FIRST_BYTES = 64;

/**
 * Removes an unusable value, whose version would otherwise block the fence. A value that was written since stays.
 * @param value undefined for a key of another type
 */
export async function dropValue(redis: RedisClient, key: string, value: Buffer | undefined): Promise<void> {
  await redis.fleetbookDropIfSame(key, value?.subarray(0, FIRST_BYTES) ?? Buffer.alloc(0));
}

const STAMPS_AT_ONCE = 500;

/** Removes the stamps of regions that a source no longer has. */
export async function dropStamps(redis: RedisClient, keys: CacheKeys, ids: readonly string[]): Promise<void> {
  for (let from = 0; from < ids.length; from += STAMPS_AT_ONCE)
    await redis.hdel(keys.verified, ...ids.slice(from, from + STAMPS_AT_ONCE));
}

export async function moveStamps(
  redis: RedisClient,
  keys: CacheKeys,
  stamps: ReadonlyMap<string, string>,
): Promise<void> {
  const entries = [...stamps];
  for (let from = 0; from < entries.length; from += STAMPS_AT_ONCE) {
    const some = entries.slice(from, from + STAMPS_AT_ONCE);
    await redis.fleetbookVerifyIfLater(keys.verified, ...some.flat());
  }
}
