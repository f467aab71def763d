import type { Environment } from '../config/config.ts';
import { audit } from '../db/audit.ts';
import { redisReady } from '../redis/redis.ts';
import { type DeciderOptions, decider } from './terminal/arguments.ts';
import { openWriter } from './terminal/open.ts';
import { print, printJson } from './terminal/print.ts';

export async function publishCommand(
  env: Environment,
  options: DeciderOptions & { json?: boolean } = {},
): Promise<void> {
  const { config, writer } = openWriter(env);
  await using _ = writer;
  const by = decider(config, options);
  await redisReady(writer.cache, 5000);
  // The cache is out of reach of a transaction: nothing is published by hand without its row.
  await audit(writer.store.db, by, { action: 'cache.publish', subject: { kind: 'cache', id: 'all' } });
  const dirty = await writer.publisher.publishDirty();
  const repaired = await writer.publisher.compare();
  const total = dirty.published + repaired.published;
  if (options.json) printJson({ published: total });
  else print(total === 0 ? 'the cache holds what the database holds' : `published ${total} documents`);
}
