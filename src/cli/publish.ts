import type { Environment } from '../config/config.ts';
import { redisReady } from '../db/redis.ts';
import { printJson } from './table.ts';
import { openWriteTier } from './write-tier.ts';

export async function publishCommand(env: Environment, options: { json?: boolean } = {}): Promise<void> {
  const { tier } = openWriteTier(env);
  await using _ = tier;
  await redisReady(tier.cache, 5000);
  const dirty = await tier.publisher.publishDirty();
  const repaired = await tier.publisher.sweep();
  const total = dirty.published + repaired.published;
  if (options.json) printJson({ published: total });
  else console.log(total === 0 ? 'the cache holds what the database holds' : `published ${total} documents`);
}
