/** Global set-up: one PostgreSQL server for the whole run, with a migrated database to clone. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { migrate } from '../../src/db/migration/migrate.ts';
import { type EmbeddedPostgresOptions, startEmbeddedPostgres } from '../../src/dev/postgres.ts';
import { databaseUrl, run } from './postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The server's administrator, and the name of the database that createDatabase() clones. */
    postgres: { readonly adminUrl: string; readonly template: string };
  }
}

/**
 * Uses the server of TEST_DATABASE_URL (its user must be allowed to create databases and roles), else an embedded
 * one.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  await using undo = new AsyncDisposableStack();
  await serveTests(project, process.env.TEST_DATABASE_URL || (await startOwn(undo)), undo);
  const running = undo.move();
  return () => running.disposeAsync();
}

/** Migrates a template on the server and provides both to the project's tests. */
export async function serveTests(
  project: TestProject,
  adminUrl: string,
  undo: AsyncDisposableStack,
): Promise<void> {
  const template = `template_${randomBytes(8).toString('hex')}`;
  await run(adminUrl, `create database ${template} template template0`);
  undo.defer(() => run(adminUrl, `drop database if exists ${template} with (force)`));
  await migrate(databaseUrl(adminUrl, template));
  project.provide('postgres', { adminUrl, template });
}

/** @returns the address of its administrator */
export async function startOwn(
  undo: AsyncDisposableStack,
  options: Partial<EmbeddedPostgresOptions> = {},
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'fleetbook-test-'));
  undo.defer(() => rm(folder, { recursive: true, force: true }));
  const dataDir = join(folder, 'postgres');
  const server = await startEmbeddedPostgres({ durable: false, maxConnections: 300, ...options, dataDir });
  return undo.use(server).url;
}
