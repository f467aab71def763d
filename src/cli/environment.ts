import { SETTINGS } from '../config/settings.ts';
import type { Environment } from '../config/source-config.ts';
import { runningEnvironment } from '../dev/running.ts';

/**
 * The environment of a command, completed by the settings of the `up` that runs in the same home. A command that names
 * another database than that `up` gets nothing of it.
 */
export function commandEnvironment(env: Environment): Environment {
  const running = runningEnvironment(env.FLEETBOOK_HOME || SETTINGS.FLEETBOOK_HOME.fallback);
  if (running === undefined) return env;
  if (env.DATABASE_URL && env.DATABASE_URL !== running.DATABASE_URL) return env;
  return { ...running, ...Object.fromEntries(Object.entries(env).filter(([, value]) => value)) };
}
