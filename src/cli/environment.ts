import type { Environment } from '../config/config.ts';
import { SETTINGS } from '../config/settings.ts';
import { runningEnvironment } from '../dev/running.ts';

/**
 * The environment of a command: where it names no database, the one with which the `up` beside it runs, so that
 * `fleetbook status` needs no settings on the machine where everything runs.
 */
export function commandEnvironment(env: Environment): Environment {
  if (env.DATABASE_URL) return env;
  const running = runningEnvironment(env.FLEETBOOK_HOME || SETTINGS.FLEETBOOK_HOME.fallback);
  return running ? { ...running, ...given(env) } : env;
}

function given(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
}
