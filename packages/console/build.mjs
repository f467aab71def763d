/**
 * Builds the console into `dist/console` if a file of `packages/console` is newer than the last build. The published package
 * contains the built console, compressed, so that no worker compresses it. This file is plain JavaScript because it may run under the system's Node.
 *
 * After a failed build the program starts anyway, and the page shows the failure. With `--strict` a failure sets the exit code.
 */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { constants, gzipSync } from 'node:zlib';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCE = fileURLToPath(new URL('.', import.meta.url));
const FOLDER = join(ROOT, 'dist/console');
const BUILT = join(FOLDER, 'index.html');

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
  for (const entry of readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })) {
    if (!/\.(?:html|js|css|svg)$/.test(entry)) continue;
    const path = join(FOLDER, entry);
    // Every browser accepts gzip, and few accept Brotli without TLS. A second coding would take a fiftieth of the package.
    writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: constants.Z_BEST_COMPRESSION }));
  }
}

const isStrict = process.argv.includes('--strict');
try {
  if (isStrict || !isUpToDate()) await build();
} catch (error) {
  const why = error instanceof Error ? error.message : String(error);
  console.error(`fleetbook: the console could not be built: ${why}`);
  if (isStrict) process.exitCode = 1;
}
