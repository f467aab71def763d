/** The files of a fixture: what one release has stored and answered. `node test/upgrades/make-fixture.ts` writes them. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { constants, gunzipSync, gzipSync } from 'node:zlib';
import type { CacheValue } from './cache-values.ts';
import type { DatabaseRows } from './database-rows.ts';
import type { RecordedAnswer } from './recorded-answers.ts';

const FOLDER = join(import.meta.dirname, '..');
const DESCRIPTION = 'release.json';

export interface Release {
  readonly release: string;
  /** The newest migration of the release. */
  readonly migration: string;
  readonly madeAt: string;
  /** API tokens by name. They belong to this fixture only. */
  readonly tokens: Readonly<Record<string, string>>;
}

export interface Fixture extends Release {
  readonly rows: DatabaseRows;
  readonly cache: readonly CacheValue[];
  readonly answers: readonly RecordedAnswer[];
  readonly openApi: object;
}

const PARTS = { rows: 'database', cache: 'cache', answers: 'answers', openApi: 'openapi' } as const;

export async function writeFixture(fixture: Fixture): Promise<string> {
  const { rows, cache, answers, openApi, ...release } = fixture;
  const folder = join(FOLDER, release.release);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, DESCRIPTION), `${JSON.stringify(release, null, 2)}\n`);
  for (const [part, value] of Object.entries({ rows, cache, answers, openApi }))
    await writeFile(join(folder, fileOf(part as keyof typeof PARTS)), compressed(value));
  return folder;
}

export async function readFixture(release: string): Promise<Fixture> {
  const folder = join(FOLDER, release);
  const description = JSON.parse(await readFile(join(folder, DESCRIPTION), 'utf8')) as Release;
  const part = async (name: keyof typeof PARTS) =>
    JSON.parse(gunzipSync(await readFile(join(folder, fileOf(name)))).toString());
  return {
    ...description,
    rows: await part('rows'),
    cache: await part('cache'),
    answers: await part('answers'),
    openApi: await part('openApi'),
  };
}

/** Returns the names of all kept releases. */
export async function keptReleases(): Promise<string[]> {
  const entries = await readdir(FOLDER, { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory() && entry.name !== 'support');
  return folders.map(({ name }) => name).sort();
}

const fileOf = (part: keyof typeof PARTS): string => `${PARTS[part]}.json.gz`;

/** One line for each element, so that the same value always gives the same bytes. */
function compressed(value: unknown): Buffer {
  return gzipSync(JSON.stringify(value, null, 1), { level: constants.Z_BEST_COMPRESSION });
}
