import { readFileSync } from 'node:fs';

/** A request of the README's section "A first look", and what it says the sample answers. */
export interface ReadmeExample {
  readonly path: string;
  /** The whole answer, or its beginning where the README breaks it off. */
  readonly answer: string;
  readonly isWhole: boolean;
}

const README = new URL('../../README.md', import.meta.url);

/** Every request there that is answered with a body, as a person pastes it. */
export function readmeExamples(): ReadmeExample[] {
  const [, section = ''] = /^## A first look\n(.*?)^## /ms.exec(readFileSync(README, 'utf8')) ?? [];
  return [...section.matchAll(/^\$ get "?\$url([^\s"]+)"?.*\n(.*)$/gm)].map(([, path = '', line = '']) => ({
    path,
    answer: line.replace(/, …$/, ''),
    isWhole: !line.endsWith(', …'),
  }));
}

/** The entity tag with which that section asks for a cluster again. */
export function readmeTag(): string | undefined {
  return /If-None-Match: ("[^"]+")' \$url\/v1\/clusters\/cluster-test/.exec(
    readFileSync(README, 'utf8'),
  )?.[1];
}
