/**
 * The packages that a release contains. Some are installed next to it, and some are part of its files: rolldown bundles the
 * server, vite the console, and the reference page is a copy. `npm sbom` and `npm audit` know only the first kind.
 */
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';
import { build } from 'vite';
import config from '../rolldown.config.ts';
import { published } from './manifest.ts';

const ROOT = join(import.meta.dirname, '..');
/** `src/http/reference/build.mjs` copies its program. */
const COPIED = 'node_modules/@scalar/fastify-api-reference';

interface LockEntry {
  readonly name?: string;
  readonly version: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

export interface Component {
  readonly name: string;
  readonly version: string;
  /** SPDX expression; absent if the package states none. */
  readonly license: string | undefined;
  readonly integrity: string | undefined;
  /** Path in package-lock.json. */
  readonly path: string;
  readonly delivery: 'installed' | 'bundled';
}

const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
  readonly packages: Readonly<Record<string, LockEntry>>;
};

/** Returns the installed and the bundled packages of the server, ordered by name. */
export async function components(): Promise<Component[]> {
  const installed = [...reachable()];
  const paths = new Set([...(await modulesOfServer()), ...(await modulesOfConsole())].flatMap(packageOf));
  const bundled = [...paths, COPIED].filter((path) => !installed.includes(path));
  return [
    ...installed.map((path) => component(path, 'installed')),
    ...bundled.map((path) => component(path, 'bundled')),
  ].sort((one, other) => one.name.localeCompare(other.name) || one.version.localeCompare(other.version));
}

/**
 * Returns the paths of the packages that npm installs with the published one. Flags in the lock file are unreliable for other
 * platforms.
 */
export function reachable(from = '', found = new Set<string>()): Set<string> {
  const entry: Partial<LockEntry> | undefined = from === '' ? published(packages[''] ?? {}) : packages[from];
  const names = Object.keys({ ...entry?.dependencies, ...entry?.optionalDependencies });
  for (const name of names) {
    const path = resolved(from, name);
    if (path === undefined || found.has(path)) continue;
    found.add(path);
    reachable(path, found);
  }
  return found;
}

/** Returns the path where Node finds a package that is imported at `from`. */
function resolved(from: string, name: string): string | undefined {
  const path = `${from === '' ? '' : `${from}/`}node_modules/${name}`;
  if (packages[path] !== undefined) return path;
  return from === ''
    ? undefined
    : resolved(from.slice(0, Math.max(from.lastIndexOf('/node_modules/'), 0)), name);
}

function component(path: string, delivery: Component['delivery']): Component {
  const entry = packages[path];
  if (entry === undefined) throw new Error(`package-lock.json has no entry ${path}; run npm install`);
  const name = entry.name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const { version, integrity } = entry;
  return { name, version, license: entry.license ?? installedLicense(path), integrity, path, delivery };
}

/** Entries for other platforms have no licence in the lock file if npm did not read the package. */
function installedLicense(path: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(join(ROOT, path, 'package.json'), 'utf8')) as { license?: string })
      .license;
  } catch {
    return undefined;
  }
}

/** Returns the lock file's path of the package that a module belongs to. */
function packageOf(module: string): string[] {
  const path = relative(ROOT, module.replaceAll('\0', ''));
  return /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path) ?? [];
}

async function modulesOfServer(): Promise<string[]> {
  if (Array.isArray(config)) throw new Error('rolldown.config.ts has several builds; add them here');
  const { output, ...input } = config;
  const modules: string[] = [];
  const collect: Plugin = {
    name: 'collect modules',
    generateBundle() {
      modules.push(...this.getModuleIds());
    },
  };
  const bundle = await rolldown({ ...input, plugins: [input.plugins, collect] });
  await bundle.generate(Array.isArray(output) ? output[0] : output);
  await bundle.close();
  return modules;
}

async function modulesOfConsole(): Promise<string[]> {
  const result = await build({
    configFile: join(ROOT, 'packages/console/vite.config.ts'),
    build: { write: false },
  });
  const outputs = Array.isArray(result) ? result : [result];
  return outputs.flatMap((each) =>
    'output' in each ? each.output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : [])) : [],
  );
}
