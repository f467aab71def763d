import type { Environment } from '../config/config.ts';
import { redisReady } from '../redis/redis.ts';
import { type DeciderOptions, decider } from './terminal/arguments.ts';
import { openWriter, restoredTokensMessage } from './terminal/open.ts';
import { print, printJson } from './terminal/print.ts';

/** After a backup was restored: a new lineage, and everything published under it. */
export async function restoredCommand(
  env: Environment,
  options: DeciderOptions & { json?: boolean } = {},
): Promise<void> {
  // What is found is told below.
  const { config, writer } = openWriter(env, () => {});
  await using _ = writer;
  await redisReady(writer.cache, 5000);
  const { published, lineage } = await writer.publisher.restored(
    'an operator says that a backup was restored',
    decider(config, options),
  );
  if (options.json) {
    const { id = null, revokedAgain = [], forgotten = [] } = lineage ?? {};
    return printJson({ lineage: id, published, revokedAgain, forgotten });
  }
  const lines = lineage
    ? [
        `the database has a new lineage; ${published} documents were published anew`,
        ...restoredTokensMessage(lineage),
      ]
    : ['another process has just given the database a new lineage, and publishes everything anew'];
  for (const line of lines) print(line);
  print(
    'every source runs again within a minute, where a worker runs. Look through the tokens: fleetbook token list',
  );
}
