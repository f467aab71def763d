/** The releases of the readers and workers of a history: this one, and perhaps another one. */
import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { composeReader } from '../../src/app/reader.ts';
import type { readSettings } from '../../src/config/settings.ts';
import type { buildApp } from '../../src/http/app.ts';

const ROOT = join(import.meta.dirname, '../..');
const WORKER = 'test/oracle/programs/worker.ts';

export interface OracleRelease {
  readonly composeReader: typeof composeReader;
  readonly readSettings: typeof readSettings;
  readonly buildApp: typeof buildApp;
  /** Path of the worker program. */
  readonly worker: string;
  /** True if the release has searches. */
  readonly hasSearch: boolean;
  /** True if the release has the changes feed. */
  readonly hasFeed: boolean;
}

/** @param folder the root of its source; this one's unless given */
export async function loadRelease(folder = ROOT): Promise<OracleRelease> {
  const load = (path: string) => import(pathToFileURL(join(folder, path)).href);
  const has = (path: string) =>
    load(path).then(
      () => true,
      () => false,
    );
  const [reader, settings, app] = await Promise.all(
    ['src/app/reader.ts', 'src/config/settings.ts', 'src/http/app.ts'].map(load),
  );
  const worker = join(folder, WORKER);
  if (folder !== ROOT) {
    await mkdir(join(worker, '..'), { recursive: true });
    await cp(join(ROOT, WORKER), worker);
  }
  return {
    composeReader: reader.composeReader,
    readSettings: settings.readSettings,
    buildApp: app.buildApp,
    worker,
    hasSearch: await has('src/features/search/answers.ts'),
    hasFeed: await has('src/features/feed/follow-changes.ts'),
  };
}
