/** Backs a database up and restores it while programs are connected. */
import { inject } from 'vitest';
import { databaseUrl, run, type TestDatabase } from '../support/postgres.ts';

export interface Backup {
  /** Replaces the database by the backup. Connections are closed; clients find the database under the same name. */
  restore(): Promise<void>;
}

export interface BackupOptions {
  /**
   * Copies the database as the server's files would be copied: the restored database equals the backup in all but its
   * rows.
   */
  readonly ofFiles?: boolean;
}

/** Takes a backup, which closes all connections. */
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

/** No client can connect to the database during this time. */
async function alone(adminUrl: string, name: string, act: () => Promise<void>): Promise<void> {
  await run(adminUrl, `alter database ${name} allow_connections false`);
  await run(
    adminUrl,
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '${name}'`,
  );
  await act();
  await run(adminUrl, `alter database ${name} allow_connections true`);
}
