import type { Logger } from 'pino';
import { UPGRADES } from './upgrades.ts';

/** Settings of earlier releases, with their replacements. */
const REMOVED = UPGRADES.flatMap(({ settings }) => Object.entries(settings.removed));

export function removedSettings(env: Readonly<Record<string, string | undefined>>): string[] {
  return REMOVED.filter(([name]) => env[name]).map(
    ([name, instead]) => `${name} is no longer a setting: ${instead}`,
  );
}

export function warnOfRemovedSettings(
  env: Readonly<Record<string, string | undefined>>,
  logger: Pick<Logger, 'warn'>,
): void {
  for (const line of removedSettings(env)) logger.warn(line);
}
