/** A thousand clients that request the same uncached document at the same moment. */
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Sql } from '../../src/db/connection/connect.ts';
import { freePort } from '../../src/processes/port.ts';
import { fetchAnswer } from './capture.ts';
import { PROVIDER } from './fill.ts';
import { startFleetbook } from './fleetbook.ts';
import type { Scene } from './scene.ts';

export interface SingleFlight {
  readonly callers: number;
  /** Answers with the list. */
  readonly answered: number;
  /** Statements that PostgreSQL executed in the reader's role during this time. */
  readonly queries: number;
}

const CALLERS = 1000;

/**
 * The cache's Redis is away, but the token and the list of providers are already known, so that only the read of one
 * region is counted. `sql` is the owner's, on a server that has pg_stat_statements.
 */
export async function measureSingleFlight(
  { databaseUrl, folder, filled }: Scene,
  sql: Sql,
): Promise<SingleFlight> {
  await using fleetbook = await startFleetbook({
    env: { DATABASE_URL: databaseUrl, REDIS_URL: `redis://127.0.0.1:${await freePort()}` },
    logFile: join(folder, 'servers.log'),
  });
  const { port } = fleetbook;
  const headers = { authorization: `Bearer ${filled.token}` };
  const list = (region: number) => `/v1/machines?provider=${PROVIDER}&region=${region}`;
  const sockets = await Promise.all(Array.from({ length: CALLERS }, () => open(port)));
  try {
    await fetchAnswer(port, list(filled.small), headers);
    await sql`create extension if not exists pg_stat_statements`;
    await sql`select pg_stat_statements_reset()`;
    const request = `GET ${list(filled.large)} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${headers.authorization}\r\nConnection: close\r\n\r\n`;
    const answers = await Promise.all(sockets.map((socket) => exchange(socket, request)));
    const [row] = await sql<{ calls: number }[]>`
      select coalesce(sum(s.calls), 0)::integer as calls
      from pg_stat_statements s
      where s.dbid = (select oid from pg_database where datname = current_database())
        and s.query like '%from regions r%'`;
    return {
      callers: CALLERS,
      answered: answers.filter((status) => status === 200).length,
      queries: row?.calls ?? 0,
    };
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  return socket;
}

/** @returns the status of the answer once it is complete */
function exchange(socket: Socket, request: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let head = '';
    socket.on('data', (chunk: Buffer) => {
      if (head.length < 12) head += chunk.toString('latin1');
    });
    socket.once('error', reject);
    socket.once('end', () => resolve(Number(head.slice(9, 12))));
    socket.write(request);
  });
}
