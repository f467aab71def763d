import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtempDisposable, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const CONFIG = join(ROOT, '.dependency-cruiser.json');
const DEPCRUISE = join(ROOT, 'node_modules/.bin/depcruise');

interface Violation {
  readonly from: string;
  readonly to: string;
  readonly rule: { name: string };
}

interface Cruise {
  readonly modules: readonly { readonly source: string }[];
  readonly summary: { readonly violations: readonly Violation[] };
}

/** Every form of import in TypeScript. */
const FORMS: Readonly<Record<string, (specifier: string) => string>> = {
  value: (specifier) => `import { thing } from '${specifier}';\nexport const mine = thing;\n`,
  type: (specifier) => `import type { Thing } from '${specifier}';\nexport type Mine = Thing;\n`,
  'inline-type': (specifier) => `import { type Thing } from '${specifier}';\nexport type Mine = Thing;\n`,
  'type-expression': (specifier) => `export type Mine = import('${specifier}').Thing;\n`,
  're-export': (specifier) => `export { thing } from '${specifier}';\n`,
  'type-re-export': (specifier) => `export type { Thing } from '${specifier}';\n`,
  dynamic: (specifier) => `export const mine = () => import('${specifier}');\n`,
};

/** A folder for each rule, and an import that the rule forbids there. */
const FORBIDDEN: Readonly<Record<string, { readonly in: string; readonly import: string }>> = {
  'no-circular': { in: 'src/ring', import: './other.ts' },
  'every-import-resolves': { in: 'src/sync', import: './missing.ts' },
  'every-package-is-declared': { in: 'src/db', import: 'undeclared' },
  'the-product-never-imports-tests': { in: 'workers', import: '../test/thing.ts' },
  'domain-sees-nothing-of-ours': { in: 'src/domain', import: '../db/thing.ts' },
  'domain-does-no-io': { in: 'src/domain', import: 'node:fs' },
  'sources-see-domain': { in: 'src/sources', import: '../db/thing.ts' },
  'an-adapter-does-not-know-its-neighbours': { in: 'src/sources/clusters', import: '../providers/thing.ts' },
  'adapters-are-found-not-named': { in: 'src/sources', import: './providers/thing.ts' },
  'db-sees-domain': { in: 'src/db', import: '../sync/thing.ts' },
  'drizzle-has-one-door': { in: 'src/db/sync', import: 'drizzle-orm' },
  'postgres-has-one-door': { in: 'src/db/migration', import: 'postgres' },
  'sync-sees-domain-sources-db': { in: 'src/sync', import: '../snapshot/thing.ts' },
  'market-sees-domain-db-snapshot': { in: 'src/market', import: '../http/thing.ts' },
  'the-core-knows-no-market': { in: 'src/snapshot', import: '../market/market.ts' },
  'the-market-has-one-door': { in: 'src/features/one', import: '../../market/thing.ts' },
  'redis-sees-domain': { in: 'src/redis', import: '../snapshot/thing.ts' },
  'the-core-knows-no-feature': { in: 'src/ops', import: '../features/one/thing.ts' },
  'a-feature-knows-no-neighbour': { in: 'src/features/two', import: '../one/thing.ts' },
  'features-see-the-core': { in: 'src/features/one', import: '../../dev/thing.ts' },
  'snapshot-sees-domain-db': { in: 'src/snapshot', import: '../sources/thing.ts' },
  'http-sees-domain-snapshot': { in: 'src/http/routes', import: '../../db/thing.ts' },
  'ops-sees-domain-db': { in: 'src/ops', import: '../http/thing.ts' },
  'processes-see-domain': { in: 'src/processes', import: '../db/thing.ts' },
  'dev-sees-domain-processes': { in: 'src/dev', import: '../db/thing.ts' },
  'sample-sees-domain': { in: 'src/dev/sample', import: '../../sources/thing.ts' },
  'config-sees-what-can-be-configured': { in: 'src/config', import: '../db/thing.ts' },
  'app-is-composed-of-what-runs': { in: 'src/app', import: '../dev/thing.ts' },
  'processes-see-what-they-start': { in: 'src/app/processes', import: '../../cli/thing.ts' },
  'src-never-imports-workers': { in: 'src/dev', import: '../../workers/thing.ts' },
  'workers-do-not-serve': { in: 'workers/jobs', import: '../../src/http/thing.ts' },
  'client-sees-nothing-of-ours': { in: 'packages/client/src', import: '../../../src/domain/thing.ts' },
  'client-needs-web-standards-alone': { in: 'packages/client/src', import: 'in-production' },
  'mcp-sees-the-client': { in: 'packages/mcp/src', import: '../../../src/db/thing.ts' },
  'the-server-needs-no-package': { in: 'src/http', import: '../../packages/client/src/thing.ts' },
  'console-sees-what-its-routes-answer': { in: 'packages/console/src', import: '../../../src/db/thing.ts' },
  'opentelemetry-has-one-door': { in: 'workers', import: 'bullmq-otel' },
  'nobody-imports-an-entry-point': { in: 'src/dev', import: '../cli.ts' },
  'no-loose-files': { in: 'src/cli', import: '../loose.ts' },
};

/** Allowed imports, one for each direction. */
const ALLOWED: Readonly<Record<string, string>> = {
  'src/sources/a.ts': '../domain/thing.ts',
  'src/db/a.ts': '../domain/thing.ts',
  'src/sync/a.ts': '../sources/thing.ts',
  'src/sync/b.ts': '../db/thing.ts',
  'src/snapshot/a.ts': '../db/thing.ts',
  'src/features/one/a.ts': '../../snapshot/thing.ts',
  'src/market/a.ts': '../snapshot/thing.ts',
  'src/features/one/b.ts': '../../market/market.ts',
  'src/redis/a.ts': '../domain/thing.ts',
  'src/http/routes/a.ts': '../../snapshot/thing.ts',
  'src/ops/a.ts': '../db/thing.ts',
  'packages/client/src/a.ts': './thing.ts',
  'packages/console/src/a.ts': 'dev-only',
  'packages/console/src/b.ts': '../../../src/domain/thing.ts',
  'src/domain/a.ts': 'node:crypto',
  'src/db/b.ts': 'in-production',
  'src/db/c.ts': '../config/package.ts',
  'src/db/sync/a.ts': '../thing.ts',
  'src/dev/a.ts': '../processes/thing.ts',
  'src/dev/b.ts': 'postgres',
  'src/dev/sample/a.ts': '../../processes/thing.ts',
  'src/config/a.ts': '../sources/thing.ts',
  'src/app/a.ts': '../sync/thing.ts',
  'src/app/processes/a.ts': '../../dev/thing.ts',
  'src/app/processes/b.ts': '../../../workers/thing.ts',
  'src/index.ts': './app/thing.ts',
  'packages/mcp/src/a.ts': '../../client/src/thing.ts',
  'workers/main.ts': './thing.ts',
  'workers/a.ts': '../src/app/thing.ts',
  'src/cli/a.ts': '../../workers/main.ts',
  'src/features/tracing/b.ts': 'bullmq-otel',
};

const THING = 'export const thing = 1;\nexport interface Thing { readonly one: 1 }\n';
const THINGS = [
  ...[
    'app',
    'cli',
    'db',
    'dev',
    'domain',
    'features/one',
    'http',
    'market',
    'processes',
    'snapshot',
    'sources',
    'sources/providers',
    'sync',
  ].map((f) => `src/${f}/thing.ts`),
  ...[
    'src/config/package.ts',
    'src/cli.ts',
    'src/loose.ts',
    'src/market/market.ts',
    'packages/client/src/thing.ts',
    'packages/console/src/thing.ts',
    'workers/thing.ts',
    'test/thing.ts',
  ],
];

/** Creates a small project with these files, and with our rules and compiler settings. */
async function tree(files: Readonly<Record<string, string>>) {
  const folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-imports-'));
  const all: Record<string, string> = {
    ...Object.fromEntries(THINGS.map((path) => [path, THING])),
    'src/db/connection/drizzle.ts': `import 'drizzle-orm';\n${THING}`,
    'src/db/schema.ts': `import './connection/drizzle.ts';\n${THING}`,
    'package.json': JSON.stringify({
      type: 'module',
      dependencies: {
        'in-production': '1.0.0',
        'drizzle-orm': '1.0.0',
        postgres: '1.0.0',
        'bullmq-otel': '1.0.0',
      },
      devDependencies: { 'dev-only': '1.0.0' },
    }),
    ...files,
  };
  for (const name of ['in-production', 'drizzle-orm', 'postgres', 'bullmq-otel', 'dev-only', 'undeclared']) {
    all[`node_modules/${name}/package.json`] = JSON.stringify({
      name,
      version: '1.0.0',
      type: 'module',
      main: 'i.js',
    });
    all[`node_modules/${name}/i.js`] = 'export const thing = 1;\n';
  }
  for (const [path, text] of Object.entries(all)) {
    await mkdir(join(folder.path, dirname(path)), { recursive: true });
    await writeFile(join(folder.path, path), text);
  }
  await copyFile(join(ROOT, 'tsconfig.json'), join(folder.path, 'tsconfig.json'));
  return folder;
}

async function cruise(cwd: string): Promise<Cruise> {
  const args = ['--config', CONFIG, '--output-type', 'json', 'src', 'workers', 'packages'];
  const { stdout } = await run(DEPCRUISE, args, { cwd, maxBuffer: 64 * 1024 * 1024 });
  return JSON.parse(stdout) as Cruise;
}

describe('the import directions', () => {
  const fired = new Set<string>();

  beforeAll(async () => {
    const files: Record<string, string> = {};
    for (const [rule, where] of Object.entries(FORBIDDEN)) {
      for (const [form, source] of Object.entries(FORMS)) {
        files[`${where.in}/${rule}-${form}.ts`] = source(where.import.replace('other', `other-${form}`));
        if (rule === 'no-circular') {
          files[`${where.in}/other-${form}.ts`] = `export * from './${rule}-${form}.ts';\n${THING}`;
        }
      }
    }
    await using forbidden = await tree(files);
    for (const violation of (await cruise(forbidden.path)).summary.violations) {
      fired.add(`${violation.rule.name} ${violation.from}`);
    }
  });

  it('each have a case below', async () => {
    const config = JSON.parse(await readFile(CONFIG, 'utf8')) as { forbidden: { name: string }[] };
    expect(config.forbidden.map((rule) => rule.name).sort()).toEqual(Object.keys(FORBIDDEN).sort());
  });

  it.each(Object.entries(FORBIDDEN))('detect every form of import that breaks %s', (rule, where) => {
    const missed = Object.keys(FORMS).filter((form) => !fired.has(`${rule} ${where.in}/${rule}-${form}.ts`));
    expect(missed).toEqual([]);
  });

  it('fail the check if one is broken', async () => {
    const ring = { 'src/ring/a.ts': "import './b.ts';\n", 'src/ring/b.ts': "import './a.ts';\n" };
    await using broken = await tree(ring);
    const check = run(DEPCRUISE, ['--config', CONFIG, 'src'], { cwd: broken.path });
    await expect(check).rejects.toMatchObject({
      code: expect.any(Number),
      stdout: expect.stringContaining('no-circular'),
    });
  });

  it('accept allowed imports', async () => {
    const files = Object.fromEntries(
      Object.entries(ALLOWED).map(([path, specifier]) => [path, `import '${specifier}';\n`]),
    );
    await using allowed = await tree(files);
    const seen = await cruise(allowed.path);
    expect(seen.summary.violations).toEqual([]);
    expect(seen.modules.map((module) => module.source)).toEqual(expect.arrayContaining(Object.keys(ALLOWED)));
  });

  it('hold in every file of the product', async () => {
    const files: string[] = [];
    for (const folder of ['src', 'workers', 'packages']) {
      for (const path of await readdir(join(ROOT, folder), { recursive: true })) {
        if (path.endsWith('.ts') && !path.includes('dist/')) files.push(join(folder, path));
      }
    }
    const seen = await cruise(ROOT);
    expect(seen.modules.map((module) => module.source)).toEqual(expect.arrayContaining(files));
    expect(seen.summary.violations.map(({ from, to, rule }) => `${rule.name}: ${from} → ${to}`)).toEqual([]);
  });
});

it('changes of organizations, users and tokens go through app/actions/administration.ts, which writes the audit log', async () => {
  const administration = 'app/actions/administration.ts';
  const changes = /\b(create|rename|delete|revoke|rotate)(Organization|User|Token)\b/;
  const imports = /^(?:import|export) \{([^}]*)\} from '[^']*db\/(?:organizations|tokens|users)\.ts'/gm;
  const found: string[] = [];
  for (const path of await readdir(join(ROOT, 'src'), { recursive: true })) {
    if (!path.endsWith('.ts') || path.startsWith('db/') || path === administration) continue;
    for (const [, names = ''] of (await readFile(join(ROOT, 'src', path), 'utf8')).matchAll(imports))
      if (changes.test(names)) found.push(path);
  }
  expect(found).toEqual([]);
  expect(await readFile(join(ROOT, 'src', administration), 'utf8')).toMatch(
    /import \{ createToken, revokeToken, rotateToken \} from '..\/..\/db\/tokens.ts'/,
  );
});

describe('the compiler', () => {
  it('is TypeScript 7, while dependency-cruiser uses the API of TypeScript 6', async () => {
    const { stdout } = await run(join(ROOT, 'node_modules/.bin/tsc'), ['--version']);
    expect(stdout).toMatch(/^Version 7\./);
  });
});
