/**
 * Builds the console (`packages/console`) into `dist/console` when it is not there yet, or when a file of it is newer: a
 * checkout has it without a step of its own. Plain JavaScript, as src/dev/install.mjs: it may run under the system's Node. The
 * published package brings it built.
 *
 * A console that cannot be built keeps nobody from starting: the page says so. With `--strict` it is an error.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCE = fileURLToPath(new URL('.', import.meta.url));
const BUILT = join(ROOT, 'dist/console/index.html');

const changedAt = (path) => statSync(path).mtimeMs;

/** Whether what was built is younger than everything that it is made of. */
function isBuilt() {
  if (!existsSync(BUILT)) return false;
  const built = changedAt(BUILT);
  const parts = [
    ...readdirSync(SOURCE, { recursive: true }).map((path) => join(SOURCE, path)),
    join(ROOT, 'package-lock.json'),
  ];
  return parts.every((path) => changedAt(path) <= built);
}

async function build() {
  const { build: viteBuild } = await import('vite');
  await viteBuild({ configFile: join(SOURCE, 'vite.config.ts') });
}

const isStrict = process.argv.includes('--strict');
try {
  if (isStrict || !isBuilt()) await build();
} catch (error) {
  const why = error instanceof Error ? error.message : String(error);
  console.error(`fleetbook: the console could not be built: ${why}`);
  if (isStrict) process.exitCode = 1;
}
