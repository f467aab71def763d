import type { ClientDatabase } from '../../../src/db/connection/connect.ts';
import { feedFollower } from '../../../src/features/feed/append-changes.ts';
import type { RedisClient } from '../../../src/redis/redis.ts';
import { Publisher } from '../../../src/snapshot/publish/publisher.ts';

export function feedPublisher(db: ClientDatabase, redis: RedisClient): Publisher {
  return new Publisher(db, redis, { followers: [feedFollower({ db, redis })] });
}
