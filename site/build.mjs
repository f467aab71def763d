/**
 * Builds the documentation site into `site/dist`: `npm run docs:build`. The site has its own packages, which are installed
 * when they are missing. Plain JavaScript, because only the site's packages have types for what it imports.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openApiText } from './build/openapi.ts';
import { ADAPTERS, FILES, sitePages } from './build/pages.ts';
import { readPages } from './build/repository.ts';
import { placed, routeOf } from './build/sections.ts';

const SITE = import.meta.dirname;
const ROOT = join(SITE, '..');
const GENERATED = join(SITE, '.generated');
const CONTENT = join(SITE, 'src/content/docs');
const ENV = { ...process.env, ASTRO_TELEMETRY_DISABLED: '1' };

function run(program, args) {
  const { status, error } = spawnSync(program, args, { cwd: SITE, stdio: 'inherit', env: ENV });
  if (error !== undefined || status !== 0)
    throw new Error(`${program} ${args.join(' ')} failed, see above${error ? `: ${error.message}` : ''}`);
}

/** npm writes `node_modules/.package-lock.json` after a complete installation. It skips packages for other platforms. */
function isInstalled() {
  const path = join(SITE, 'node_modules/.package-lock.json');
  if (!existsSync(path)) return false;
  const packagesOf = (file) => JSON.parse(readFileSync(file, 'utf8')).packages;
  const installed = packagesOf(path);
  return Object.entries(packagesOf(join(SITE, 'package-lock.json'))).every(
    ([name, { version, optional }]) =>
      name === '' || installed[name]?.version === version || (installed[name] === undefined && optional),
  );
}

function write(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

async function writeContent() {
  const { drawn } = await import('./diagrams.mjs');
  for (const folder of [GENERATED, CONTENT]) rmSync(folder, { recursive: true, force: true });
  const texts = readPages(ROOT);
  const site = sitePages(
    texts,
    (path) => existsSync(join(ROOT, path)) && statSync(join(ROOT, path)).isFile(),
  );
  for (const { route, title, description, body } of site.pages) {
    const head = Object.entries({ title, description }).map(
      ([name, value]) => `${name}: ${JSON.stringify(value)}`,
    );
    write(join(CONTENT, `${route}.md`), `---\n${head.join('\n')}\n---\n${drawn(body)}`);
  }
  cpSync(join(SITE, 'src/start.mdx'), join(CONTENT, 'index.mdx'));
  for (const file of site.files) {
    const target = join(GENERATED, 'public', FILES, file);
    mkdirSync(dirname(target), { recursive: true });
    cpSync(join(ROOT, file), target);
  }
  for (const name of ['overview-light.png', 'overview-dark.png'])
    cpSync(join(ROOT, 'docs/images', name), join(GENERATED, 'public', FILES, 'docs/images', name));
  cpSync(join(SITE, 'src/favicon.svg'), join(GENERATED, 'public/favicon.svg'));
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  write(join(GENERATED, 'openapi.json'), await openApiText(version));
  write(join(GENERATED, 'menu.json'), JSON.stringify(menu(texts, site.pages), null, 2));
}

/** The menu of Starlight: each adapter has an entry below the page of all adapters. */
function menu(texts, pages) {
  const adapters = pages.filter(({ route }) => route.startsWith(`${routeOf(ADAPTERS)}/`));
  const isPlane = ({ title }) => title.endsWith('(clusters)');
  const group = (label, some) => ({
    label,
    collapsed: true,
    items: some.map(({ route, title }) => ({ slug: route, label: title.replace(' (clusters)', '') })),
  });
  return placed([...texts.keys()]).map(({ label, collapsed, pages: paths }) => ({
    label,
    collapsed,
    items: paths.flatMap((path) => [
      { slug: routeOf(path) },
      ...(path === ADAPTERS
        ? [
            group(
              'Providers',
              adapters.filter((each) => !isPlane(each)),
            ),
            group('Control planes', adapters.filter(isPlane)),
          ]
        : []),
    ]),
  }));
}

const started = performance.now();
try {
  if (!isInstalled()) run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']);
  await writeContent();
  rmSync(join(SITE, 'dist'), { recursive: true, force: true });
  run(process.execPath, ['node_modules/astro/bin/astro.mjs', 'build', '--silent']);
  const { checkSite } = await import('./check.mjs');
  const { pages, links, problems } = checkSite(join(SITE, 'dist'), ENV.DOCS_BASE || '/');
  for (const problem of problems) console.error(problem);
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  console.log(`${pages} pages, ${links} links, ${problems.length} problems, ${seconds} s: site/dist`);
  if (problems.length > 0) process.exitCode = 1;
} catch (error) {
  console.error(`docs:build: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
