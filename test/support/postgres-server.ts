/** Global set-up: one PostgreSQL server for the whole run, with one migrated database to clone. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { migrate } from '../../src/db/migrate.ts';
import { startEmbeddedPostgres } from '../../src/dev/postgres.ts';
import { databaseUrl, run } from './postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The server's administrator, and the name of the database that createDatabase() clones. */
    postgres: { readonly adminUrl: string; readonly template: string };
  }
}

/** Uses the server that TEST_DATABASE_URL names (its user must be allowed to create databases and roles), else its own. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  await using undo = new AsyncDisposableStack();
  const adminUrl = process.env.TEST_DATABASE_URL || (await startOwn(undo));
  const template = `template_${randomBytes(8).toString('hex')}`;
  await run(adminUrl, `create database ${template} template template0`);
  undo.defer(() => run(adminUrl, `drop database if exists ${template} with (force)`));
  await migrate(databaseUrl(adminUrl, template));
  project.provide('postgres', { adminUrl, template });
  const running = undo.move();
  return () => running.disposeAsync();
}

async function startOwn(undo: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'fleetbook-test-'));
  undo.defer(() => rm(folder, { recursive: true, force: true }));
  const dataDir = join(folder, 'postgres');
  return undo.use(await startEmbeddedPostgres({ dataDir, durable: false, maxConnections: 300 })).url;
}
