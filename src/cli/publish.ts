import type { Environment } from '../config.ts';
import { redisReady } from '../store/redis.ts';
import { openWriteTier } from './write-tier.ts';

export async function publishCommand(env: Environment): Promise<void> {
  const { tier } = openWriteTier(env);
  await using _ = tier;
  await redisReady(tier.cache, 5000);
  const dirty = await tier.publisher.publishDirty();
  const repaired = await tier.publisher.sweep();
  const total = dirty.published + repaired.published;
  console.log(total === 0 ? 'the cache holds what the database holds' : `published ${total} documents`);
}
