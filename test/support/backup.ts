/** A database's backup, and its restoration while programs are connected. */
import { inject } from 'vitest';
import { databaseUrl, run, type TestDatabase } from './postgres.ts';

export interface Backup {
  /** Puts the backup in the place of the database. Whoever was connected is cut off, and finds it under the same name. */
  restore(): Promise<void>;
}

export interface BackupOptions {
  /** As a copy of the server's files: the restored database is in all but its rows the one that was backed up. */
  readonly ofFiles?: boolean;
}

/** Takes a backup; whoever is connected is cut off for the moment. */
export async function backUp(db: TestDatabase, { ofFiles = false }: BackupOptions = {}): Promise<Backup> {
  const { adminUrl } = inject('postgres');
  const backup = `${db.name}_backup`;
  await alone(adminUrl, db.name, () => run(adminUrl, `create database ${backup} template ${db.name}`));
  if (ofFiles)
    await run(databaseUrl(adminUrl, backup), 'update lineage set database_identity = database_identity()');
  return {
    async restore() {
      await alone(adminUrl, db.name, async () => {
        await run(adminUrl, `drop database ${db.name}`);
        await run(adminUrl, `alter database ${backup} rename to ${db.name}`);
      });
    },
  };
}

/** Nobody is connected to the database meanwhile. */
async function alone(adminUrl: string, name: string, act: () => Promise<void>): Promise<void> {
  await run(adminUrl, `alter database ${name} allow_connections false`);
  await run(
    adminUrl,
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '${name}'`,
  );
  await act();
  await run(adminUrl, `alter database ${name} allow_connections true`);
}
