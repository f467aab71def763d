import type { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { SessionSql } from './connect.ts';

/** Characters sent at once: a packet a row would cost more than the row. */
const CHUNK = 65_536;

/**
 * Copies rows into a table of the session and analyzes it. What comes are whole rows in COPY's text format, one or
 * many at a time, each with its line feed; `copyField` makes their fields. That may take as long as the rows take to
 * come, whatever time a statement has otherwise: whoever makes them has deadlines of their own.
 *
 * postgres.js 3.4 never says that a COPY failed once its end was sent: neither that the server refused a row nor that
 * the connection was lost. The statement after it does not wait for that word, and the rows are counted.
 * @throws what the lines throw, with nothing copied; Error when the server did not take every row
 */
export async function copyLines(sql: SessionSql, table: string, lines: AsyncIterable<string>): Promise<void> {
  await sql`set statement_timeout = 0`;
  const copy = await sql`copy ${sql(table)} from stdin`.writable();
  const failed = new Promise<never>((_, reject) => copy.on('error', reject));
  failed.catch(() => {});
  const sent = await send(copy, chunksOf(lines), failed);
  copy.end();
  await afterCopy(() => sql`reset statement_timeout`);
  await sql`analyze ${sql(table)}`;
  const [row] = await sql<{ taken: number }[]>`select count(*)::int as taken from ${sql(table)}`;
  if (row?.taken === sent) return;
  throw new Error(`PostgreSQL took ${row?.taken} of ${sent} rows into ${table}; its own log says why`);
}

interface Chunk {
  readonly text: string;
  readonly rows: number;
}

async function* chunksOf(lines: AsyncIterable<string>): AsyncGenerator<Chunk, undefined> {
  let text = '';
  let rows = 0;
  for await (const line of lines) {
    text += line;
    rows += countRows(line);
    if (text.length < CHUNK) continue;
    yield { text, rows };
    text = '';
    rows = 0;
  }
  if (rows > 0) yield { text, rows };
  return undefined;
}

/** The line feeds: one inside of a field is written in another way. */
function countRows(lines: string): number {
  let rows = 0;
  for (let at = lines.indexOf('\n'); at >= 0; at = lines.indexOf('\n', at + 1)) rows += 1;
  return rows;
}

/** Sends every chunk, and gives up at once, also in the middle of a long wait for the next one, when the copy fails. */
async function send(
  copy: Writable,
  chunks: AsyncGenerator<Chunk, undefined>,
  failed: Promise<never>,
): Promise<number> {
  let sent = 0;
  try {
    for (;;) {
      const { value } = await Promise.race([chunks.next(), failed]);
      if (value === undefined) return sent;
      await Promise.race([new Promise((resolve) => copy.write(value.text, resolve)), failed]);
      sent += value.rows;
    }
  } catch (error) {
    copy.destroy(error instanceof Error ? error : new Error(String(error)));
    // Whoever makes the rows may be waiting for an upstream: nobody waits for that here.
    chunks.return(undefined).catch(() => {});
    throw error;
  }
}

/** The copy's end goes out with the next turns of the event loop; until then the connection takes no statement. */
async function afterCopy(statement: () => PromiseLike<unknown>): Promise<void> {
  for (;;) {
    await setImmediate();
    try {
      await statement();
      return;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'COPY_IN_PROGRESS')) throw error;
    }
  }
}

const ESCAPES: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };

/** A field that is null. */
export const COPY_NULL = '\\N';

/** Text as COPY's text format wants it. NUL, which Postgres cannot hold, is refused by the adapters' schemas. */
export function copyField(text: string): string {
  return text.replace(/[\\\t\n\r]/g, (character) => ESCAPES[character] ?? character);
}
