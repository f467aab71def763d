/** All writes to the cache. One script sets a document if it is newer, and appends its version to the stream of the lineage. */
import { randomBytes } from 'node:crypto';
import type { Result } from 'ioredis';
import type { RedisClient } from '../../redis/redis.ts';
import { FORMAT } from '../document/format.ts';
import { type CacheKeys, type DocumentName, documentId, FEED_ID } from '../document/keys.ts';

/** Entries that a stream holds at least: Redis trims whole blocks. A reader that is further behind compares its memory. */
const ENTRIES = 10_000;
/** Longest time (ms) between two heartbeats of a publisher. After a longer one it publishes what is dirty. */
const HEARTBEAT_GAP_MS = 1000;
/** Other publishers append no heartbeat for this time (ms) after one. */
const HEARTBEAT_COUNTS_MS = 300;

/**
 * Appends an entry. It names the mark of the entry before it, so that a reader sees each lost one: after an eviction, trimming, a
 * flush, or a failover that loses the end. All entries have the same fields, which Redis stores once.
 */
const APPEND = `
local function last(stream)
  if redis.call('TYPE', stream).ok ~= 'stream' then
    redis.call('DEL', stream)
    return nil
  end
  return redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
end
local function append(stream, mark, what, value)
  local before = last(stream)
  local function add(run)
    return run('XADD', stream, 'MAXLEN', '~', ${ENTRIES}, '*',
      'mark', mark, 'before', before and before[2][2] or '', 'what', what, 'value', value)
  end
  if type(add(redis.pcall)) == 'string' then return end
  -- No id follows the last possible one, which only a foreign entry has.
  redis.call('DEL', stream)
  before = nil
  add(redis.call)
end
`;

/**
 * KEYS document, stream · ARGV value, version, format, seconds to live ('' = no expiry), document id, mark
 *
 * Returns 1 if it set the document, 0 if the cache has the same or a newer version. The publisher makes a reader's write-back
 * permanent. Only the publisher replaces another format: a reader of an older release must not overwrite a newer format.
 */
const SET_IF_NEWER = `
${APPEND}
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
append(KEYS[2], ARGV[6], ARGV[5], ARGV[2])
return 1
`;

/**
 * KEYS document, stream · ARGV document id, version, mark
 *
 * Announces a version that the cache cannot store, and deletes the older one. A full cache runs it.
 */
const REJECT = `#!lua flags=allow-oom
${APPEND}
redis.call('DEL', KEYS[1])
append(KEYS[2], ARGV[3], ARGV[1], ARGV[2])
return 1
`;

/** KEYS stream · ARGV what, value, mark. Appends an entry to a stream that exists. A full cache runs it. */
const ANNOUNCE = `#!lua flags=allow-oom
${APPEND}
if not last(KEYS[1]) then return 0 end
append(KEYS[1], ARGV[3], ARGV[1], ARGV[2])
return 1
`;

/**
 * KEYS stream · ARGV time of the publisher's last heartbeat ('' = none), id of its entry ('' = none), mark
 *
 * Returns whether it accepted the heartbeat, the server's time (ms), the id of the entry that counts, and whether the stream still has
 * the entry of the last heartbeat. A heartbeat that waited in a socket while the publisher was cut off is late. A young heartbeat of
 * another publisher is as good. A full cache runs it.
 */
const HEARTBEAT = `#!lua flags=allow-oom
${APPEND}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local previous = tonumber(ARGV[1])
if not previous or math.abs(now - previous) > ${HEARTBEAT_GAP_MS} then return { 0, now, '', 1 } end
local before = last(KEYS[1])
local isThere = (ARGV[2] == '' or #redis.call('XREVRANGE', KEYS[1], ARGV[2], ARGV[2]) == 1) and 1 or 0
if before and before[2][6] == 'heartbeat' then
  local age = now - tonumber(string.match(before[1], '^%d+'))
  -- After the clock went back, the age is negative for a while.
  if age >= 0 and age < ${HEARTBEAT_COUNTS_MS} then return { 1, now, before[1], isThere } end
end
append(KEYS[1], ARGV[3], 'heartbeat', '')
return { 1, now, last(KEYS[1])[1], isThere }
`;

/** KEYS document · ARGV its first bytes ('' for a key of another type). Returns 1 if it deleted the key. */
const DROP_IF_SAME = `
local isString = redis.call('TYPE', KEYS[1]).ok == 'string'
if isString and redis.call('GETRANGE', KEYS[1], 0, #ARGV[1] - 1) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`;

/**
 * KEYS hash, stream · ARGV mark, field, stamp, field, stamp, …: moves stamps forward in time, never back, and appends those that
 * moved. For equal times the greater text wins, so that a retired source stays retired. A full cache runs it: readers would state
 * ever greater ages for sources that are read, and refuse requests with a `max-age`. A stamp has some 60 bytes.
 */
const MOVE_STAMPS = `#!lua flags=allow-oom
${APPEND}
local function time(stamp) return string.match(stamp, ' (.*)$') or '' end
local moved = {}
for i = 2, #ARGV, 2 do
  local stored = redis.call('HGET', KEYS[1], ARGV[i])
  local stamp = ARGV[i + 1]
  local isLater = not stored or time(stamp) > time(stored) or (time(stamp) == time(stored) and stamp > stored)
  if isLater then
    redis.call('HSET', KEYS[1], ARGV[i], stamp)
    moved[#moved + 1] = { ARGV[i], stamp }
  end
end
if #moved > 0 then append(KEYS[2], ARGV[1], 'stamps', cjson.encode(moved)) end
return #moved
`;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    fleetbookSetIfNewer(
      document: string,
      stream: string,
      value: Buffer,
      version: string,
      format: string,
      seconds: string,
      id: string,
      mark: string,
    ): Result<number, Context>;
    fleetbookReject(
      document: string,
      stream: string,
      id: string,
      version: string,
      mark: string,
    ): Result<number, Context>;
    fleetbookAnnounce(stream: string, what: string, value: string, mark: string): Result<number, Context>;
    fleetbookHeartbeat(
      stream: string,
      previous: string,
      entry: string,
      mark: string,
    ): Result<[isAccepted: 0 | 1, time: number, entry: string, isThere: 0 | 1], Context>;
    fleetbookDropIfSame(document: string, firstBytes: Buffer): Result<number, Context>;
    fleetbookMoveStamps(
      hash: string,
      stream: string,
      mark: string,
      ...fieldsAndStamps: string[]
    ): Result<number, Context>;
  }
}

/** Adds the scripts to a client. */
export function withFence<T extends RedisClient>(redis: T): T {
  redis.defineCommand('fleetbookSetIfNewer', { numberOfKeys: 2, lua: SET_IF_NEWER });
  redis.defineCommand('fleetbookReject', { numberOfKeys: 2, lua: REJECT });
  redis.defineCommand('fleetbookAnnounce', { numberOfKeys: 1, lua: ANNOUNCE });
  redis.defineCommand('fleetbookHeartbeat', { numberOfKeys: 1, lua: HEARTBEAT });
  redis.defineCommand('fleetbookDropIfSame', { numberOfKeys: 1, lua: DROP_IF_SAME });
  redis.defineCommand('fleetbookMoveStamps', { numberOfKeys: 2, lua: MOVE_STAMPS });
  return redis;
}

const WRITER = randomBytes(9).toString('base64url');
let written = 0;

/** Returns the mark of an entry, which no other entry has. */
function newMark(): string {
  written += 1;
  return `${WRITER}-${written.toString(36)}`;
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
  const set = await redis.fleetbookSetIfNewer(
    keys.document(name),
    keys.stream,
    value,
    String(version),
    FORMAT,
    expireSeconds === undefined ? '' : String(expireSeconds),
    documentId(name),
    newMark(),
  );
  return set === 1;
}

/**
 * Announces a version that the cache rejected, e.g. because its memory is full, and deletes the older one. Readers then read the
 * document from Postgres.
 */
export async function announceRejected(
  redis: RedisClient,
  keys: CacheKeys,
  name: DocumentName,
  version: number,
): Promise<void> {
  await redis.fleetbookReject(keys.document(name), keys.stream, documentId(name), String(version), newMark());
}

/** Announces the end of the feed of changes. */
export async function announceFeed(redis: RedisClient, keys: CacheKeys, position: number): Promise<void> {
  await redis.fleetbookAnnounce(keys.stream, FEED_ID, String(position), newMark());
}

/** Announces to readers of an old lineage that the cache names another one. */
export async function announceLineage(redis: RedisClient, old: CacheKeys, lineage: string): Promise<void> {
  await redis.fleetbookAnnounce(old.stream, 'lineage', lineage, newMark());
}

/** An accepted heartbeat of a publisher. */
export interface Heartbeat {
  /** Milliseconds of the server. */
  readonly time: number;
  /** The id of its entry; undefined for none. */
  readonly entry: string | undefined;
}

/**
 * Appends a heartbeat, unless the last one is longer ago than readers allow.
 * @param previous the last accepted heartbeat; undefined for none
 * @returns the same for this one. `hasLost`: the stream lacks the entry of the last one, so the cache may lack documents too
 */
export async function sendHeartbeat(
  redis: RedisClient,
  keys: CacheKeys,
  previous: Heartbeat | undefined,
): Promise<Heartbeat & { readonly isAccepted: boolean; readonly hasLost: boolean }> {
  const since = previous === undefined ? '' : String(previous.time);
  const known = previous?.entry ?? '';
  const [isAccepted, time, entry, isThere] = await redis.fleetbookHeartbeat(
    keys.stream,
    since,
    known,
    newMark(),
  );
  return { isAccepted: isAccepted === 1, time, entry: entry || undefined, hasLost: isThere === 0 };
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

/** Runs a command, and once more without the key if that has another type: such a key would block all later commands. */
export async function replacing<T>(redis: RedisClient, key: string, command: () => Promise<T>): Promise<T> {
  try {
    return await command();
  } catch (error) {
    if (!(error instanceof Error && error.message.includes('WRONGTYPE'))) throw error;
    await redis.del(key);
    return await command();
  }
}

const STAMPS_AT_ONCE = 500;

/** Removes the stamps of regions that a source no longer has. */
export async function dropStamps(redis: RedisClient, keys: CacheKeys, ids: readonly string[]): Promise<void> {
  for (let from = 0; from < ids.length; from += STAMPS_AT_ONCE)
    await redis.hdel(keys.stamps, ...ids.slice(from, from + STAMPS_AT_ONCE));
}

export async function moveStamps(
  redis: RedisClient,
  keys: CacheKeys,
  stamps: ReadonlyMap<string, string>,
): Promise<void> {
  const entries = [...stamps];
  for (let from = 0; from < entries.length; from += STAMPS_AT_ONCE) {
    const some = entries.slice(from, from + STAMPS_AT_ONCE);
    await replacing(redis, keys.stamps, () =>
      redis.fleetbookMoveStamps(keys.stamps, keys.stream, newMark(), ...some.flat()),
    );
  }
}
