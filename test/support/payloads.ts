/**
 * Answers of upstreams in two folders with the same paths. The small ones were written for the tests: values are facts, and texts
 * our own. The recorded ones are not part of the repository, and lie next to it where they exist.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { TestOptions } from 'vitest';
import { needs } from './needs.ts';

export interface Payloads {
  readonly folder: URL;
  json(path: string): ReturnType<typeof JSON.parse>;
  raw(path: string): { raw: Buffer };
  /** Linode's pages of availability, in order. */
  availability(): string[];
}

function payloadsIn(folder: URL): Payloads {
  const read = (path: string) => readFileSync(new URL(path, folder));
  return {
    folder,
    json: (path) => JSON.parse(read(path).toString()),
    raw: (path) => ({ raw: read(path) }),
    availability: () =>
      readdirSync(new URL('linode/', folder))
        .filter((name) => name.startsWith('regions-availability'))
        .sort()
        .map((name) => `linode/${name}`),
  };
}

export const WRITTEN = payloadsIn(new URL('../fixtures/payloads/', import.meta.url));
export const RECORDED = payloadsIn(new URL('../../../shared/data/', import.meta.url));

export const hasRecorded = existsSync(RECORDED.folder);

/** Options of a test that reads recorded payloads: the last lines of a run without them name it with this reason. */
export const needsRecorded: TestOptions = needs(
  hasRecorded,
  'the folder of recorded payloads, next to the repository; the small ones are tested',
);
