import { hostname, userInfo } from 'node:os';
import type { Config } from '../config/config.ts';
import type { Decider } from '../db/queries/accepted-prices.ts';
import { UsageFailure } from './failure.ts';

export interface DeciderOptions {
  readonly by?: string;
  readonly reason?: string;
}

/** Who decides and why, for the record. @throws UsageFailure for a text that cannot be shown on one line */
export function decider(config: Config, { by, reason }: DeciderOptions): Decider {
  return {
    by: oneLine('--by', by) ?? config.settings.FLEETBOOK_OPERATOR ?? `${userName()}@${hostname()}`,
    reason: oneLine('--reason', reason),
  };
}

function oneLine(option: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const trimmed = text.trim();
  if (trimmed !== '' && !/\p{Cc}/u.test(trimmed)) return trimmed;
  throw new UsageFailure(`${option} must be some text on one line`);
}

/** A container may run under a number that has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
