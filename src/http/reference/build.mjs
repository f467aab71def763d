/**
 * Copies the reference page's program from its package to `dist/reference`, compressed, unless it is there. The published
 * package contains the copy and not that package. Plain JavaScript, because it may run under the system's Node.
 *
 * A failure does not prevent a start: the page then says that it is not built. With `--strict` it is an error.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants } from 'node:zlib';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const TARGET = join(ROOT, 'dist/reference');
/** The best quality takes ten times as long and saves a tenth. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };

/** Returns whether the copy is newer than the lock file. */
function isBuilt() {
  if (!existsSync(TARGET)) return false;
  const needed = statSync(join(ROOT, 'package-lock.json')).mtimeMs;
  const files = readdirSync(TARGET);
  return files.length > 0 && files.every((name) => statSync(join(TARGET, name)).mtimeMs >= needed);
}

async function program() {
  const { default: fastify } = await import('fastify');
  const { default: reference } = await import('@scalar/fastify-api-reference');
  const app = fastify();
  await app.register(reference, { routePrefix: '/reference', configuration: { url: '/openapi.json' } });
  const { statusCode, rawPayload } = await app.inject('/reference/js/scalar.js');
  await app.close();
  if (statusCode !== 200) throw new Error(`@scalar/fastify-api-reference answers ${statusCode}`);
  return rawPayload;
}

async function build() {
  const plain = await program();
  const packed = await promisify(brotliCompress)(plain, BROTLI);
  const name = `scalar-${createHash('sha256').update(plain).digest('hex').slice(0, 16)}.js`;
  rmSync(TARGET, { recursive: true, force: true });
  mkdirSync(TARGET, { recursive: true });
  writeFileSync(join(TARGET, `${name}.br`), packed);
}

const isStrict = process.argv.includes('--strict');
try {
  if (isStrict || !isBuilt()) await build();
} catch (error) {
  const why = error instanceof Error ? error.message : String(error);
  console.error(`fleetbook: the reference page could not be built: ${why}`);
  if (isStrict) process.exitCode = 1;
}
