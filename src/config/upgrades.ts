/** What each release changes for an installation. `docs/upgrades/<release>.json` holds the data. */
import type { Logger } from 'pino';
import first from '../../docs/upgrades/0.1.0.json' with { type: 'json' };
import type { Environment } from './source-config.ts';

export interface Upgrade {
  readonly release: string;
  /** The release before, and the commit or tag of its code. */
  readonly previous: { readonly release: string; readonly revision: string };
  readonly settings: {
    readonly added: readonly string[];
    /** Name → replacement. */
    readonly removed: Readonly<Record<string, string>>;
  };
  /** Rows of the database on which the migrations were measured. */
  readonly measuredWith: string;
  readonly migrations: readonly MigrationImpact[];
  /** Steps of an operator, in order. */
  readonly steps: readonly string[];
  /** What happens when the previous release starts on the newer schema. */
  readonly back: string;
}

export interface MigrationImpact {
  readonly name: string;
  /** The strongest lock on tables that exist already; null if no statement waits for it. */
  readonly lock: string | null;
  readonly ms: number;
}

/** All releases, oldest first. */
export const UPGRADES: readonly Upgrade[] = [first];

const REMOVED = UPGRADES.flatMap(({ settings }) => Object.entries(settings.removed));

/** Returns a line for each setting of an earlier release that is still set. */
export function removedSettings(env: Environment): string[] {
  return REMOVED.filter(([name]) => env[name]).map(
    ([name, instead]) => `${name} is no longer a setting: ${instead}`,
  );
}

export function warnOfRemovedSettings(env: Environment, logger: Pick<Logger, 'warn'>): void {
  for (const line of removedSettings(env)) logger.warn(line);
}
