import { readFileSync } from 'node:fs';

/** A request of the README or of docs/api.md, with the documented answer. */
export interface PageExample {
  readonly path: string;
  /** The whole answer, or its beginning if the page shortens it. */
  readonly answer: string;
  readonly isWhole: boolean;
}

const PAGES = ['README.md', 'docs/api.md'].map((page) =>
  readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8'),
);

/** Returns each request with a token that both pages show with its answer. */
export function pageExamples(): PageExample[] {
  return PAGES.flatMap((page) => [
    ...page.matchAll(/^```sh\nget "\$url([^"]+)"\n```\n\n```json\n(.*)\n```$/gm),
  ]).map(([, path = '', line = '']) => ({
    path,
    answer: line.replace(/, …$/, ''),
    isWhole: !line.endsWith(', …'),
  }));
}

/** Returns the entity tag in the conditional request of docs/api.md. */
export function pageTag(): string | undefined {
  const request = /If-None-Match: ("[^"]+")' "\$url\/v1\/clusters\/cluster-test/;
  return PAGES.map((page) => request.exec(page)?.[1]).find((tag) => tag !== undefined);
}
