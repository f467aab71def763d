/** The next release, from the commits of a clone. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { inPackage } from '../../src/config/package.ts';
import { needs } from '../support/needs.ts';

const MODULES = inPackage('release/please/node_modules');
const isInstalled = needs(
  existsSync(join(MODULES, 'release-please')),
  'release-please: npm ci --prefix release/please --ignore-scripts',
);
const MANIFESTS = [
  'package.json',
  ...['client', 'mcp', 'console'].map((name) => `packages/${name}/package.json`),
];
const CHART = 'deploy/helm/fleetbook/Chart.yaml';
const FILES = [...MANIFESTS, CHART, 'package-lock.json', 'release-please-config.json'];

/** A repository with the release's files, no commit of this one, and the release 0.1.0. */
async function clone() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-please-'));
  const { path } = folder;
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.invalid', ...args], {
      cwd: path,
      encoding: 'utf8',
    });
  const write = (file: string, text: string) => writeFileSync(join(path, file), text);
  const read = (file: string) => readFileSync(join(path, file), 'utf8');
  const commit = (message: string, file = 'src.ts') => {
    write(file, message);
    git('add', '.');
    git('commit', '--quiet', '--message', message);
  };
  git('init', '--quiet', '--initial-branch', 'main');
  for (const file of FILES) cpSync(inPackage(file), join(path, file), { recursive: true });
  cpSync(inPackage('release/please'), join(path, 'release/please'), {
    recursive: true,
    filter: (from) => !from.includes('node_modules'),
  });
  symlinkSync(MODULES, join(path, 'release/please/node_modules'));
  mkdirSync(join(path, '.git/info'), { recursive: true });
  write('.git/info/exclude', 'node_modules\n');
  for (const file of MANIFESTS) write(file, read(file).replace(/"version": "[^"]+"/, '"version": "0.1.0"'));
  write('.release-please-manifest.json', '{ ".": "0.1.0" }\n');
  write('CHANGELOG.md', '# Changelog\n\n## Unreleased\n\n## 0.1.0 (2026-01-01)\n\n- First.\n');
  commit('chore: release 0.1.0');
  git('tag', 'v0.1.0');
  return {
    commit,
    write,
    read,
    preview: (...args: string[]) =>
      execFileSync(process.execPath, ['release/please/main.mjs', 'preview', ...args], {
        cwd: path,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
    [Symbol.asyncDispose]: () => folder.remove(),
  };
}

describe('the next release', isInstalled, () => {
  it('has the version that its commits decide', async () => {
    await using repository = await clone();
    repository.commit('docs: a page');
    expect(repository.preview()).toMatch(/^no release: /);
    repository.commit('fix(sync): a page without rows');
    expect(repository.preview()).toMatch(/^chore: release 0\.1\.1\n/);
    repository.commit('feat(api)!: another field');
    expect(repository.preview()).toMatch(/^chore: release 0\.2\.0\n/);
  });

  it('moves the written text below its version, adds the commits, and changes each manifest', async () => {
    await using repository = await clone();
    const before = repository.read('CHANGELOG.md');
    const written = '### Before you upgrade\n- Stop the workers: $& first.';
    repository.write(
      'CHANGELOG.md',
      before.replace('## Unreleased\n', (heading) => `${heading}\n${written}\n`),
    );
    repository.commit('feat(api): a new field');
    repository.preview('--write');
    const changelog = repository.read('CHANGELOG.md');
    const [, section = ''] = changelog.split(/^## 0\.2\.0 \(\d{4}-\d\d-\d\d\)$/m);
    expect(changelog).toMatch(/^# Changelog\n\n## Unreleased\n\n## 0\.2\.0 /);
    expect(section).toContain(`${written}\n\n### Commits\n\n`);
    expect(section).toContain('#### Features\n\n* **api:** a new field');
    expect(section).toMatch(/\n\n## 0\.1\.0 \(2026-01-01\)\n\n- First\.\n$/);
    for (const file of MANIFESTS)
      expect(JSON.parse(repository.read(file)), file).toMatchObject({ version: '0.2.0' });
    expect(repository.read(CHART)).toMatch(/^version: 0\.2\.0 .*\nappVersion: 0\.2\.0 /m);
    expect(JSON.parse(repository.read('package-lock.json'))).toMatchObject({
      version: '0.2.0',
      packages: { '': { version: '0.2.0' } },
    });
    expect(JSON.parse(repository.read('.release-please-manifest.json'))).toEqual({ '.': '0.2.0' });
  });

  it('can be read from its pull request, as the release itself does after the merge', async () => {
    await using repository = await clone();
    const before = repository.read('CHANGELOG.md');
    const written = '### Removed\n\n| setting | instead |\n|---|---|\n| `A` | `B` |\n\n---\n\nMore.';
    repository.write(
      'CHANGELOG.md',
      before.replace('## Unreleased\n', (heading) => `${heading}\n${written}\n`),
    );
    repository.commit('fix: a value');
    const [body = ''] = repository.preview().replace(/^.*\n/, '').split('\nchanged: ');
    const module = 'release-please/build/src/util/pull-request-body.js';
    const { PullRequestBody } = (await import(join(MODULES, module))) as {
      PullRequestBody: {
        parse(body: string): { releaseData: { version: object; notes: string }[] } | undefined;
      };
    };
    const [release] = PullRequestBody.parse(body.trim())?.releaseData ?? [];
    expect(String(release?.version)).toBe('0.1.1');
    expect(release?.notes).toContain(written);
    expect(release?.notes).toContain('* a value');
  });
});
