/**
 * Builds the console into `dist/console` if a file of `packages/console` is newer than the last build. The published package
 * contains the built console. This file is plain JavaScript because it may run under the system's Node.
 *
 * After a failed build the program starts anyway, and the page shows the failure. With `--strict` a failure sets the exit code.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCE = fileURLToPath(new URL('.', import.meta.url));
const BUILT = join(ROOT, 'dist/console/index.html');

const changedAt = (path) => statSync(path).mtimeMs;

/** Returns true if the build is newer than all files of the console. */
function isUpToDate() {
  if (!existsSync(BUILT)) return false;
  const built = changedAt(BUILT);
  const parts = [
    ...readdirSync(SOURCE, { recursive: true }).map((path) => join(SOURCE, path)),
    join(ROOT, 'package-lock.json'),
  ];
  return parts.every((path) => changedAt(path) <= built);
}

async function build() {
  // Tests set it to `test`, for which Vite makes a development build.
  process.env.NODE_ENV = 'production';
  const { build: viteBuild } = await import('vite');
  await viteBuild({ configFile: join(SOURCE, 'vite.config.ts') });
}

const isStrict = process.argv.includes('--strict');
try {
  if (isStrict || !isUpToDate()) await build();
} catch (error) {
  const why = error instanceof Error ? error.message : String(error);
  console.error(`fleetbook: the console could not be built: ${why}`);
  if (isStrict) process.exitCode = 1;
}
