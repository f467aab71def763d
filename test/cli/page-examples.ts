import { readFileSync } from 'node:fs';

/** A request of the README or of docs/api.md, with the documented answer. */
export interface PageExample {
  readonly path: string;
  /** The answer on the page, where `…` stands for parts that are left out. */
  readonly answer: string;
}

/** Returns the lines of JSON of the README. */
export const readmeAnswers = (): string[] =>
  [...(PAGES[0] ?? '').matchAll(/^```json\n(.*)$/gm)].map(([, line = '']) => line);

const PAGES = ['README.md', 'docs/api.md'].map((page) =>
  readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8'),
);

/** Returns each request with a token that both pages show with its answer. */
export function pageExamples(): PageExample[] {
  return PAGES.flatMap((page) => [
    ...page.matchAll(/^```sh\nget "\$url([^"]+)"\n```\n\n```json\n(.*)\n```$/gm),
  ]).map(([, path = '', answer = '']) => ({ path, answer }));
}

/** Returns the part of the page's answer that `text` lacks at its place, without times; undefined if `text` is that answer. */
export function missingPart(answer: string, text: string): string | undefined {
  const [shown, found] = [timeless(answer), timeless(text)];
  const parts = shown.split(/ ?… ?/);
  let at = 0;
  for (const [index, part] of parts.entries()) {
    // The comma before a part that is left out may be the end of a list.
    const wanted = index < parts.length - 1 ? part.replace(/,$/, '') : part;
    const place = found.indexOf(wanted, at);
    if (place < 0 || (index === 0 && place > 0)) return wanted;
    at = place + wanted.length;
  }
  return parts.at(-1) === '' || at === found.length ? undefined : `the end of ${shown}`;
}

const timeless = (text: string) => text.replaceAll(/"from":"[^"]+Z"/g, '"from":""');

/** Returns the entity tag in the conditional request of docs/api.md. */
export function pageTag(): string | undefined {
  const request = /If-None-Match: ("[^"]+")' "\$url\/v1\/clusters\/cluster-test/;
  return PAGES.map((page) => request.exec(page)?.[1]).find((tag) => tag !== undefined);
}
