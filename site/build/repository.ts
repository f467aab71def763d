/** Reads the Markdown that the site shows. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SECTIONS } from './sections.ts';

/** Returns the text of each page by its path from the repository's root: all of `docs`, and the named pages outside of it. */
export function readPages(root: string): Map<string, string> {
  const inDocs = globSync('docs/**/*.md', { cwd: root });
  const outside = SECTIONS.flatMap(({ pages }) => pages)
    .filter((page) => !page.startsWith('docs/'))
    // Folders outside of docs contain programs, each with its page.
    .flatMap((page) => globSync(page.endsWith('/*') ? `${page}/README.md` : page, { cwd: root }));
  return new Map(
    [...inDocs, ...outside].sort().map((page) => [page, readFileSync(join(root, page), 'utf8')]),
  );
}
