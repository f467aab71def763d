import { SETTINGS } from '../config/settings.ts';
import type { Environment } from '../config/source-config.ts';
import { runningEnvironment } from '../dev/running.ts';

/** Adds the settings of an `up` in the same home, unless the command names another database. */
export function commandEnvironment(env: Environment): Environment {
  const running = runningEnvironment(env.FLEETBOOK_HOME || SETTINGS.FLEETBOOK_HOME.fallback);
  if (running === undefined) return env;
  if (env.DATABASE_URL && env.DATABASE_URL !== running.DATABASE_URL) return env;
  return { ...running, ...Object.fromEntries(Object.entries(env).filter(([, value]) => value)) };
}
