import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { inPackage } from '../../src/config/package.ts';
import { trackedFiles } from '../support/tracked-files.ts';

const PAGES = trackedFiles('*.md');

function read(page: string): string {
  return readFileSync(inPackage(page), 'utf8');
}

/** Returns the anchors of a page, as GitHub makes them of its headings. */
function anchors(page: string): string[] {
  const text = read(page).replaceAll(/^```.*?^```/gms, '');
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\- _]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  );
}

it.each(PAGES)('%s links to existing files and headings', (page) => {
  for (const [, link = ''] of read(page).matchAll(/(?:\]\(|src(?:set)?=")([^)"\s]+)/g)) {
    if (/^(https?|mailto):/.test(link)) continue;
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? page : join(dirname(page), path);
    expect(existsSync(inPackage(target)), link).toBe(true);
    if (anchor !== undefined && target.endsWith('.md')) expect(anchors(target), link).toContain(anchor);
  }
});

/** Files of other projects, and files that a reader makes. */
const FOREIGN = /^(docs\/comparison|docs\/adding-a-provider)\.md$/;

it.each(PAGES.filter((page) => !FOREIGN.test(page)))('%s names existing files', (page) => {
  const files = read(page).matchAll(/`((?:src|workers|packages|test|bench|deploy|release)\/[\w./-]+\.\w+)`/g);
  for (const [, file = ''] of files) expect(existsSync(inPackage(file)), file).toBe(true);
});

it('the README has at most 150 lines', () => {
  expect(read('README.md').split('\n').length).toBeLessThanOrEqual(151);
});

describe('the index of decisions', () => {
  const folder = 'docs/decisions';
  const records = readdirSync(inPackage(folder)).filter((name) => name !== 'README.md');

  it('links to each decision once', () => {
    const linked = [...read(`${folder}/README.md`).matchAll(/\]\((\d{4}-[^)]+)\)/g)].map(([, name]) => name);
    expect(linked.sort()).toEqual(records.sort());
  });

  it('is complete: comments refer to existing decisions', () => {
    const numbers = new Set(records.map((name) => name.slice(0, 4)));
    const references = trackedFiles('src', 'workers').flatMap((file) =>
      [...read(file).matchAll(/docs\/decisions\/(\d{4})/g)].map(([, number]) => number),
    );
    expect(references.length).toBeGreaterThan(5);
    for (const number of references) expect(numbers).toContain(number);
  });
});
