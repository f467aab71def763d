/** PostgreSQL comes back in an earlier state: what it had committed since is lost. */
import { cp, rm } from 'node:fs/promises';
import postgres from 'postgres';
import { heldBy, type Load } from './load.ts';
import type { Stack } from './stack.ts';

/** A copy of the files of a server that is stopped for it, as a snapshot of its volume would be. */
export async function copyFiles({ postgres: server, database }: Stack): Promise<void> {
  await database.refuse();
  await server.stop();
  await cp(server.dataDir, copyOf(server.dataDir), { recursive: true });
  await server.restart();
  await database.heal();
}

/** Puts the copy in the place of the files. Nobody reaches the server before the ledger knows what it holds. */
export async function putBack({ postgres: server, database }: Stack, load: Load): Promise<void> {
  load.publishes = false;
  await database.refuse();
  await server.kill();
  await rm(server.dataDir, { recursive: true });
  await cp(copyOf(server.dataDir), server.dataDir, { recursive: true });
  await server.restart();
  await noteWhatIsHeld(server.url, load);
  await database.heal();
}

/** Tells the ledger what a server that has gone back holds; from now on everything else is lost. */
export async function noteWhatIsHeld(url: string, { ledger }: Load): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    for (const [subject, number] of await heldBy(sql)) ledger.wentBack(subject, number);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

const copyOf = (dataDir: string): string => `${dataDir}.copy`;
