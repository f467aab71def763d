import { openLogger } from '../app/logger.ts';
import { composeWorker, type Worker } from '../app/worker.ts';
import { type Config, type Environment, readConfig } from '../config/config.ts';
import { redisReady } from '../db/redis.ts';
import type { LineageObserver } from '../snapshot/publish/publisher.ts';
import { printAside } from './print.ts';

/**
 * What a command that writes needs: the configuration, and the database and the cache opened.
 * @param onNewLineage hears that the database was found to be a restored one; tells it on standard error unless given
 */
export function openWorker(
  env: Environment,
  onNewLineage: LineageObserver = (begun, why) => {
    for (const line of [`${why}; it has a new lineage now`, ...restoredTokensMessage(begun)])
      printAside(`fleetbook: ${line}`);
  },
): { config: Config; worker: Worker } {
  const config = readConfig(env);
  const logger = openLogger({ LOG_LEVEL: env.LOG_LEVEL === 'debug' ? 'debug' : 'error' }, 'cli');
  return { config, worker: composeWorker(config, logger, { onNewLineage, decidesCurrency: false }) };
}

/** What an operator has to know of the tokens of a restored database, a line each. */
export function restoredTokensMessage({ revokedAgain, forgotten }: Parameters<LineageObserver>[0]): string[] {
  const lines: string[] = [];
  if (revokedAgain.length > 0) {
    const named = revokedAgain.map(({ id, organization }) => `${id} (${organization})`).join(', ');
    lines.push(`revoked since the backup, and now revoked again: tokens ${named}`);
  }
  if (forgotten.length > 0) {
    lines.push(
      `made since the backup, and unknown now: tokens ${forgotten.join(', ')}; whoever has one needs a new one: fleetbook token create`,
    );
  }
  return lines;
}

/** Publishes what a command changed. False when the cache is away: a worker's next round sends it. */
export async function publishNow(worker: Worker): Promise<boolean> {
  try {
    await redisReady(worker.cache, 2000);
    await worker.publisher.publishDirty();
    return true;
  } catch {
    return false;
  }
}
