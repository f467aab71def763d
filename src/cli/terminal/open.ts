/** Opens what a command changes and publishes with. */
import { openLogger } from '../../app/logger.ts';
import { composeWriter, type Writer } from '../../app/writer.ts';
import { type Configured, readSettings } from '../../config/settings.ts';
import type { Environment } from '../../config/source-config.ts';
import type { LineageObserver } from '../../snapshot/publish/publisher-options.ts';
import { printAside } from './print.ts';

/**
 * The database and the cache.
 * @param onNewLineage is called when the database turns out to be a restored one
 */
export function openWriter(
  env: Environment,
  onNewLineage: LineageObserver = tellOfNewLineage,
): { config: Configured; writer: Writer } {
  const config = { settings: readSettings(env) };
  return { config, writer: composeWriter(config, loggerOf(env), { onNewLineage }) };
}

export const loggerOf = (env: Environment) =>
  openLogger({ LOG_LEVEL: env.LOG_LEVEL === 'debug' ? 'debug' : 'error' }, 'cli');

/** Prints it on standard error. */
export const tellOfNewLineage: LineageObserver = (begun, why) => {
  for (const line of [`${why}; it has a new lineage now`, ...restoredTokensMessage(begun)])
    printAside(`fleetbook: ${line}`);
};

/** The tokens of a restored database that need attention, one line each. */
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
