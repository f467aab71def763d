import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { openApiText } from '../../site/build/openapi.ts';
import { outsideCode, sitePages, splitAdapters } from '../../site/build/pages.ts';
import { readPages } from '../../site/build/repository.ts';
import { placed, routeOf, SECTIONS } from '../../site/build/sections.ts';
import { inPackage } from '../../src/config/package.ts';
import { catalogueAdapters, clusterAdapters } from '../../src/sources/registry.ts';

const texts = readPages(inPackage());
const site = sitePages(texts, (path) => existsSync(inPackage(path)));

describe('the sections of the site', () => {
  it('have each page of docs exactly once', () => {
    const pages = placed([...texts.keys()]).flatMap((section) => section.pages);
    expect(pages).toEqual([...new Set(pages)]);
    expect(pages).toEqual(expect.arrayContaining([...texts.keys()]));
  });

  it('name a page that is in no section, or in two', () => {
    expect(() => placed(['docs/new.md'])).toThrow('docs/new.md: in no section; add the page to a section in');
    const sections = [...SECTIONS, { label: 'Again', pages: ['docs/api.md'] }];
    expect(() => placed(['docs/api.md'], sections)).toThrow('docs/api.md is in two sections');
  });

  it('omit pages that do not exist, and sections without a page', () => {
    const some = placed(['docs/decisions/0002-b.md', 'docs/decisions/0001-a.md', 'docs/decisions/README.md']);
    const pages = ['docs/decisions/README.md', 'docs/decisions/0001-a.md', 'docs/decisions/0002-b.md'];
    expect(some).toEqual([{ label: 'Decisions', collapsed: true, pages }]);
  });
});

describe('the pages of the site', () => {
  const routes = site.pages.map(({ route }) => route);

  it('have different addresses, titles and text', () => {
    expect(new Set(routes).size).toBe(routes.length);
    for (const { route, title, body } of site.pages) expect([title, body.trim()], route).not.toContain('');
  });

  it('include one for each provider and control plane', () => {
    const ids = [
      ...catalogueAdapters.map(({ id }) => id),
      ...clusterAdapters.map(({ id }) => `${id}-clusters`),
    ];
    const pages = routes.filter((route) => route.startsWith('adapters/'));
    expect(pages.sort()).toEqual(ids.map((id) => `adapters/${id}`).sort());
  });

  it('are the targets of the start page', () => {
    const start = readFileSync(inPackage('site/src/start.mdx'), 'utf8');
    const links = [...start.matchAll(/(?:\]\(|link: )\.\/([^#)\s]*?)\/(?:[#)\s])/g)].map(([, link]) => link);
    expect(links.length).toBeGreaterThan(15);
    // The site's packages make the reference from the description of the API.
    expect([...routes, 'reference']).toEqual(expect.arrayContaining(links));
  });

  it('have copies of the files that they link to', () => {
    expect([...site.files]).toEqual(
      expect.arrayContaining(['docs/images/soak.svg', 'bench/results/read.svg']),
    );
  });

  it('contain the quick start of the README', () => {
    const { body = '' } = site.pages.find(({ route }) => route === 'quick-start') ?? {};
    expect(body).toMatch(/^\n*## Start\n[\s\S]*## A first look/);
    expect(() => sitePages(new Map([['README.md', '# X\n']]), () => true)).toThrow(
      'README.md must have the sections "Start" and "Documentation"',
    );
  });

  it('describe every operation of the API', async () => {
    const { paths } = JSON.parse(await openApiText('1.2.3')) as { paths: object };
    const ofFeatures = ['/v1/machines/search', '/v1/changes', '/v1/exports', '/v1/costs', '/v1/lifecycle'];
    expect(Object.keys(paths)).toEqual(expect.arrayContaining(['/v1/machines', ...ofFeatures]));
  });
});

describe('a link in a page', () => {
  const world = new Map([
    ['docs/a.md', '# A'],
    ['docs/deep/b.md', '# B'],
    ['docs/deep/README.md', '# Deep'],
    [
      'docs/adapters.md',
      '# Adapters\n\n| adapter | x |\n| [one](#one) | 1 |\n\n### one\n\nOne.\n\n## Rest\n',
    ],
  ]);
  const bodyOf = (page: string, text: string) => {
    const pages = sitePages(
      new Map([...world, [page, `# T\n\n${text}\n`]]),
      (path) => path === 'bench/x.svg',
    ).pages;
    return pages.find(({ route }) => route === routeOf(page))?.body.trim();
  };

  it.each([
    ['docs/a.md', '[b](deep/b.md#x)', '[b](../deep/b/#x)'],
    ['docs/a.md', '[deep](deep/README.md) [deep](deep/)', '[deep](../deep/) [deep](../deep/)'],
    ['docs/deep/b.md', '[a](../a.md), [here](#x)', '[a](../../a/), [here](#x)'],
    [
      'docs/a.md',
      '[one](adapters.md#one) [rest](adapters.md#rest)',
      '[one](../adapters/one/) [rest](../adapters/#rest)',
    ],
    ['docs/a.md', '[out](https://example.com/x.md)', '[out](https://example.com/x.md)'],
    ['docs/a.md', '![x](../bench/x.svg)', '<img src="../files/bench/x.svg" alt="x">'],
    ['docs/a.md', '[`folder`](../bench)', '`folder`'],
    ['docs/a.md', '```md\n[b](deep/b.md)\n```', '```md\n[b](deep/b.md)\n```'],
  ])('in %s: %s', (page, text, expected) => {
    expect(bodyOf(page, text)).toBe(expected);
  });

  it('stays in code, and prose around it changes', () => {
    expect(outsideCode('a\n```\na\n```\na', (prose) => prose.replaceAll('a', 'b'))).toBe('b\n```\na\n```\nb');
  });

  it('to an adapter leads to its page, which states its row of the table', () => {
    const [overview, one] = splitAdapters(world.get('docs/adapters.md') ?? '');
    expect(overview?.text).not.toContain('### one');
    expect(overview?.text).toContain('## Rest');
    expect(one).toEqual({
      route: 'adapters/one',
      text: '# one\n\n| | |\n|---|---|\n| x | 1 |\n\n\nOne.\n\n',
    });
  });
});
