import type { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { ConnectionDatabase } from './connect.ts';
import { getTableName, type PgTable } from './drizzle.ts';
import { codeOf } from './errors.ts';
import { createTemporary } from './statements.ts';

/** Characters per packet: one packet per row is slow. */
const CHUNK = 65_536;

/**
 * Creates a temporary table for the rest of the connection, copies rows into it and analyzes it. The statement timeout does not apply, since the source determines the speed
 * and has deadlines. postgres.js 3.4 does not report a COPY that fails after its end was sent, so this counts the rows.
 * @param lines one or several whole rows in COPY's text format, each with its line feed; see `copyField`
 * @throws errors of `lines`, with nothing copied; Error if the server did not store every row
 */
export async function copyLines(
  db: ConnectionDatabase,
  table: PgTable,
  lines: AsyncIterable<string>,
): Promise<void> {
  const { $client: sql } = db;
  const name = sql(getTableName(table));
  await db.execute(createTemporary(table));
  await sql`set statement_timeout = 0`;
  const copy = await sql`copy ${name} from stdin`.writable();
  const failed = new Promise<never>((_, reject) => copy.on('error', reject));
  failed.catch(() => {});
  const sent = await send(copy, chunksOf(lines), failed);
  copy.end();
  await afterCopy(() => sql`reset statement_timeout`);
  await sql`analyze ${name}`;
  const taken = await db.$count(table);
  if (taken === sent) return;
  throw new Error(
    `PostgreSQL stored ${taken} of ${sent} rows in ${getTableName(table)}; the log of PostgreSQL has the cause`,
  );
}

async function* chunksOf(lines: AsyncIterable<string>): AsyncGenerator<string, undefined> {
  let text = '';
  for await (const line of lines) {
    text += line;
    if (text.length < CHUNK) continue;
    yield text;
    text = '';
  }
  if (text !== '') yield text;
  return undefined;
}

function countRows(lines: string): number {
  let rows = 0;
  for (let at = lines.indexOf('\n'); at >= 0; at = lines.indexOf('\n', at + 1)) rows += 1;
  return rows;
}

/** Sends every chunk. Stops at once if the copy fails, even while it waits for the next chunk. */
async function send(
  copy: Writable,
  chunks: AsyncGenerator<string, undefined>,
  failed: Promise<never>,
): Promise<number> {
  let sent = 0;
  try {
    for (;;) {
      const { value } = await Promise.race([chunks.next(), failed]);
      if (value === undefined) return sent;
      await Promise.race([new Promise((resolve) => copy.write(value, resolve)), failed]);
      sent += countRows(value);
    }
  } catch (error) {
    copy.destroy(error instanceof Error ? error : new Error(String(error)));
    // Do not await this: the producer may be waiting for an upstream.
    chunks.return(undefined).catch(() => {});
    throw error;
  }
}

/** Repeats the statement until the end of the copy is sent: before, the connection rejects it. */
async function afterCopy(statement: () => PromiseLike<unknown>): Promise<void> {
  for (;;) {
    await setImmediate();
    try {
      await statement();
      return;
    } catch (error) {
      if (codeOf(error) !== 'COPY_IN_PROGRESS') throw error;
    }
  }
}

const ESCAPES: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };

export const COPY_NULL = '\\N';

/** Escapes text for COPY's text format. The adapters' schemas reject NUL, which PostgreSQL cannot store. */
export function copyField(text: string): string {
  return text.replace(/[\\\t\n\r]/g, (character) => ESCAPES[character] ?? character);
}
