import { pipeline } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { CsvError, type Info, parse } from 'csv-parse';
import { tooLarge } from './http/body.ts';
import { isFramed } from './http/headers.ts';
import { elementsOf } from './http/json-entries.ts';
import { nothingListed } from './http/lists.ts';
import { badAnswer, passingFailure, type StreamAnswer } from './source.ts';

const MOST_BYTES = 512 * 1024 * 1024;
/** Rows of one list. The largest catalogue of a provider has a third of that. */
const MOST_ROWS = 250_000;
/** Characters of one line of CSV: a quote that is never closed would make one line of the rest. */
const LONGEST_LINE = 100_000;

export interface PriceRow {
  /** The row's place: `line 7` of CSV, `row 3` of JSON. */
  readonly at: string;
  /** Values by column; in CSV every value is text, and an empty value is absent. */
  readonly row: unknown;
  readonly problem?: string;
}

export const PRICE_LIST = { headers: { accept: 'text/csv, application/json' } } as const;

/**
 * Yields the rows of a price list: CSV (RFC 4180) whose first line names the columns, or a JSON array of objects.
 * @throws SourceError `invalid` for another form, an empty list or an exceeded bound; `retry` for a list that was cut
 */
export async function* priceRowsIn(
  { body, headers, url }: StreamAnswer,
  columns: readonly string[],
): AsyncGenerator<PriceRow> {
  const where = url.protocol === 'file:' ? fileURLToPath(url) : url.origin + url.pathname;
  const framed = isFramed((name) => headers.get(name));
  const { first, whole } = await opened(body, where);
  if (first === '') throw passingFailure(`${where} is empty, which is never taken for "all gone"`);
  let found = 0;
  // The JSON reader's message names HTML.
  const isJson = ['[', '{', '<'].includes(first);
  const rows = isJson ? jsonRows(whole, where) : csvRows(whole, where, columns, framed);
  for await (const row of rows) {
    found += 1;
    if (found > MOST_ROWS) {
      const problem = `${where} lists more than ${MOST_ROWS} rows, the most that are read of one list`;
      throw badAnswer(`${problem}; split it into several sources`);
    }
    yield row;
  }
  if (found === 0) throw nothingListed(where);
}

async function opened(
  body: AsyncIterable<Uint8Array>,
  where: string,
): Promise<{ first: string; whole: AsyncIterable<Uint8Array> }> {
  const rest = body[Symbol.asyncIterator]();
  const begun: Uint8Array[] = [];
  let length = 0;
  let first = '';
  while (first === '') {
    const { done, value } = await rest.next();
    if (done) break;
    begun.push(value);
    length += value.byteLength;
    // `trim` removes a byte order mark, but not its three letters in Latin-1.
    first = Buffer.from(value).toString('latin1').replace(/^ï»¿/, '').trim().slice(0, 1);
    if (length > LONGEST_LINE && first === '')
      throw badAnswer(`${where} begins with more than ${LONGEST_LINE} bytes of blanks`);
  }
  async function* whole(): AsyncGenerator<Uint8Array> {
    try {
      yield* begun;
      for (let next = await rest.next(); !next.done; next = await rest.next()) {
        length += next.value.byteLength;
        if (length > MOST_BYTES) throw tooLarge(MOST_BYTES, where);
        yield next.value;
      }
    } finally {
      await rest.return?.();
    }
  }
  return { first, whole: whole() };
}

async function* jsonRows(body: AsyncIterable<Uint8Array>, where: string): AsyncGenerator<PriceRow> {
  let index = 0;
  for await (const row of elementsOf(body, where)) {
    index += 1;
    yield { at: `row ${index}`, row };
  }
}

async function* csvRows(
  body: AsyncIterable<Uint8Array>,
  where: string,
  columns: readonly string[],
  framed: boolean,
): AsyncGenerator<PriceRow> {
  if (!framed) {
    throw passingFailure(`${where} answers CSV without its length: a list that was cut would look whole`);
  }
  const parser = parse({
    bom: true,
    info: true,
    trim: true,
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: LONGEST_LINE,
  });
  const records: AsyncIterable<{ info: Info; record: string[] }> = pipeline(
    decoded(body, where),
    parser,
    // The callback ignores a failure: reading `records` throws it.
    () => {},
  );
  let header: string[] | undefined;
  // Inside quotes the parser counts a CRLF as two lines.
  let twice = 0;
  try {
    for await (const { info, record } of records) {
      const text = record.join('');
      twice += count(text, /\r\n/g);
      const line = info.lines - twice - count(text, /\r\n|\n|\r/g);
      if (header === undefined) {
        header = readHeader(record, columns, where);
      } else {
        yield { at: `line ${line}`, ...readRecord(record, header) };
      }
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const broken = `${where} is no valid CSV at line ${Number(error.lines) - twice}: ${problemOf(error)}`;
    throw badAnswer(broken);
  }
}

async function* decoded(body: AsyncIterable<Uint8Array>, where: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const decode = (piece?: Uint8Array) => {
    try {
      return decoder.decode(piece, { stream: piece !== undefined });
    } catch {
      throw badAnswer(`${where} is not text in UTF-8; save it in that encoding`);
    }
  };
  for await (const piece of body) yield decode(piece);
  yield decode();
}

function readHeader(record: readonly string[], columns: readonly string[], where: string): string[] {
  const header = record.map((name) => name.toLowerCase());
  const missing = columns.filter((name) => !header.includes(name));
  if (missing.length > 0) {
    const commas = header.length === 1 ? '; columns are separated by commas' : '';
    throw badAnswer(
      `the first line of ${where} names no column ${missing.join(', ')}; it must name ${columns.join(', ')}${commas}`,
    );
  }
  const twice = header.find((name, index) => name !== '' && header.indexOf(name) < index);
  if (twice !== undefined) throw badAnswer(`the first line of ${where} names the column ${twice} twice`);
  return header;
}

function readRecord(record: readonly string[], header: readonly string[]): Omit<PriceRow, 'at'> {
  if (record.length !== header.length) {
    // No value belongs to a known column, not even the machine's name.
    const counted = `has ${record.length} values where the first line names ${header.length} columns`;
    return { row: undefined, problem: `${counted}; quote a value that holds a comma` };
  }
  const cells = header.flatMap((name, index) => {
    const cell = record[index] ?? '';
    return cell === '' ? [] : [[name, cell] as const];
  });
  return { row: Object.fromEntries(cells) };
}

/** The parser's messages would quote the text. */
function problemOf(error: CsvError): string {
  switch (error.code) {
    case 'CSV_QUOTE_NOT_CLOSED':
      return 'a quote is never closed';
    case 'CSV_MAX_RECORD_SIZE':
      return `a line is longer than ${LONGEST_LINE} characters; a quote may never be closed`;
    default:
      return 'a quote is inside a value; quote the whole value and double the quotes in it';
  }
}

function count(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}
