/** PostgreSQL returns in an earlier state: later commits are lost. */
import { cp, rm } from 'node:fs/promises';
import postgres from 'postgres';
import { heldBy, type Load } from './load.ts';
import type { Stack } from './stack.ts';

/** Stops a server and copies its files, as a snapshot of its volume. */
export async function copyFiles({ postgres: server, database }: Stack): Promise<void> {
  await database.refuse();
  await server.stop();
  await cp(server.dataDir, copyOf(server.dataDir), { recursive: true });
  await server.restart();
  await database.heal();
}

/** Replaces the files by the copy. The server is unreachable until the ledger knows its state. */
export async function putBack({ postgres: server, database }: Stack, load: Load): Promise<void> {
  load.publishes = false;
  await database.refuse();
  await server.kill();
  await rm(server.dataDir, { recursive: true });
  await cp(copyOf(server.dataDir), server.dataDir, { recursive: true });
  await server.restart();
  await recordHeld(server.url, load);
  await database.heal();
}

/** Reads the state of a server that went back into the ledger: all other writes are lost. */
export async function recordHeld(url: string, { ledger }: Load): Promise<void> {
  const sql = postgres(url, { max: 1, fetch_types: false, onnotice: () => {} });
  try {
    for (const [subject, number] of await heldBy(sql)) ledger.wentBack(subject, number);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

const copyOf = (dataDir: string): string => `${dataDir}.copy`;
