/**
 * The published package's manifest: its program is a bundle, so npm installs only the packages outside of the bundle with it.
 * In the clone `dependencies` are the libraries of the program, which runs there from its sources.
 *
 * npm calls `node release/manifest.ts trim` before it packs, and `restore` afterwards. The image calls `trim`.
 */
import { copyFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The queues' page reads files of its own folder, and its adapter takes the host's Fastify. See EXTERNAL in rolldown.config.ts. */
const INSTALLED = ['@bull-board/api', '@bull-board/fastify', 'fastify'];

const ROOT = join(import.meta.dirname, '..');
const FILE = join(ROOT, 'package.json');
const KEPT = join(ROOT, 'node_modules/.package.json');

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** Returns the manifest with only the dependencies that npm installs with the package. */
export function published<M extends Manifest>(
  manifest: M,
): M & { readonly dependencies: Readonly<Record<string, string>> } {
  const all = Object.entries(manifest.dependencies ?? {});
  const dependencies = Object.fromEntries(all.filter(([name]) => INSTALLED.includes(name)));
  return { ...manifest, dependencies };
}

if (import.meta.main) {
  const [, , step] = process.argv;
  if (step === 'trim') {
    mkdirSync(dirname(KEPT), { recursive: true });
    copyFileSync(FILE, KEPT);
    writeFileSync(
      FILE,
      `${JSON.stringify(published(JSON.parse(readFileSync(FILE, 'utf8'))), undefined, 2)}\n`,
    );
  } else if (step === 'restore') renameSync(KEPT, FILE);
  else throw new Error('give `trim` or `restore`');
}
