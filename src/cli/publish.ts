import type { Environment } from '../config/config.ts';
import { redisReady } from '../db/redis.ts';
import { openWorker } from './open-worker.ts';
import { print, printJson } from './print.ts';

export async function publishCommand(env: Environment, options: { json?: boolean } = {}): Promise<void> {
  const { worker } = openWorker(env);
  await using _ = worker;
  await redisReady(worker.cache, 5000);
  const dirty = await worker.publisher.publishDirty();
  const repaired = await worker.publisher.sweep();
  const total = dirty.published + repaired.published;
  if (options.json) printJson({ published: total });
  else print(total === 0 ? 'the cache holds what the database holds' : `published ${total} documents`);
}
