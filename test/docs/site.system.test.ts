import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { readPages } from '../../site/build/repository.ts';
import { inPackage } from '../../src/config/package.ts';
import { needs } from '../support/needs.ts';

const hasPackages = existsSync(inPackage('site/node_modules/.package-lock.json'));

describe(
  'the built site',
  needs(hasPackages, 'the packages of the site (npm run docs:build installs them)'),
  () => {
    interface Checked {
      readonly pages: number;
      readonly links: number;
      readonly problems: readonly string[];
    }
    const check = async (files: Record<string, string>, base?: string): Promise<Checked> => {
      using folder = mkdtempDisposableSync(join(tmpdir(), 'fleetbook-site-'));
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(dirname(join(folder.path, path)), { recursive: true });
        writeFileSync(join(folder.path, path), text);
      }
      const path = inPackage('site/check.mjs');
      const { checkSite } = (await import(path)) as { checkSite(folder: string, base?: string): Checked };
      return checkSite(folder.path, base);
    };

    it('has a check that finds broken links and foreign files', async () => {
      const { problems } = await check({
        'index.html': `<a href="b/">ok</a><a href="/b/#there">ok</a><a href="https://example.com">ok</a>
        <code>&lt;a href="nowhere/"></code>
        <a href="nowhere/">1</a><a href="b/#gone">2</a><img src="https://example.com/x.png"><script src="//cdn.example/x.js"></script>
        <img srcset="x.png 2x">`,
        'b/index.html': '<h2 id="there">There</h2>',
        'a.css': '@import "https://fonts.example/a.css"; .x { background: url(data:image/png;base64,x) }',
      });
      expect(problems).toEqual([
        'index.html: nowhere/ has no target',
        'index.html: b/#gone names a heading that does not exist',
        'index.html: loads https://example.com/x.png from another server',
        'index.html: loads //cdn.example/x.js from another server',
        'index.html: x.png has no target',
        'a.css: loads @import "https://fonts.example/a.css',
      ]);
    });

    it('has a check that knows the address below which the site is served', async () => {
      const files = { 'index.html': '<a href="/below/">ok</a><a href="/">outside</a>' };
      expect((await check(files, '/below')).problems).toEqual(['index.html: / has no target']);
    });

    it('has every page, and no problem', async () => {
      const { stdout } = await promisify(execFile)(process.execPath, [inPackage('site/build.mjs')]);
      const [, pages = ''] = /^(\d+) pages, \d+ links, 0 problems/m.exec(stdout) ?? [];
      expect(Number(pages), stdout).toBeGreaterThan(readPages(inPackage()).size);
    }, 600_000);
  },
);
