/** The reader's part: the list of stored files, and downloads. */
import { z } from 'zod';
import type { ReaderContext, ReaderPart } from '../../app/feature.ts';
import {
  type ClientDatabase,
  type Database,
  databaseOn,
  executePrepared,
} from '../../db/connection/client.ts';
import { asc, eq, getTableColumns, sql } from '../../db/connection/drizzle.ts';
import { rfc3339 } from '../../db/connection/statements.ts';
import { exportChunks, exports } from '../../db/schema.ts';
import { steadyNow } from '../../domain/clock.ts';
import type { ApiFeature } from '../../http/app.ts';
import { Places } from '../../http/lasting-answers.ts';
import { named } from '../../http/openapi-schemas.ts';
import { type Operation, operation } from '../../http/operation.ts';
import { acceptsType, allowedCodings } from '../../http/protocol/negotiate.ts';
import { parameter } from '../../http/protocol/parameters.ts';
import { NOT_FOUND, Problem } from '../../http/protocol/problem.ts';
import { requestedRange, unsatisfiable } from '../../http/protocol/range.ts';
import { count, documented, instant as instantSchema, text } from '../../http/schemas.ts';
import {
  type StreamAnswer,
  type StreamOperation,
  type StreamRequest,
  streamOperation,
} from '../../http/stream-operation.ts';
import type { ReadableMarket } from '../../market/market.ts';
import { shared } from '../../ops/shared-reads.ts';
import { type Answer, Unavailable } from '../../snapshot/document/answer.ts';
import { encodeBody } from '../../snapshot/document/body.ts';
import type { PostgresReads } from '../../snapshot/read/postgres-reads.ts';
import { karpenterOperation } from './karpenter.ts';
import { openCostOperation } from './opencost.ts';
import {
  EXPORT_FILES,
  EXPORT_TYPES,
  type ExportFile,
  type ExportFormat,
  type StoredExport,
} from './tables.ts';

/** Connections of a reader for downloads. Other answers do not wait behind them. */
const CONNECTIONS = 2;

export const readExports = ({ openReads, market }: ReaderContext): ReaderPart => ({
  api: exportsApi(exportReader(openReads(CONNECTIONS), steadyNow), market),
});

const exportSchema = named(
  'ExportFile',
  z.strictObject({
    file: documented(z.enum(EXPORT_FILES), { description: 'Its name, for `/v1/exports/{file}`' }),
    version: text('Names the state of the catalogue; the same for all files'),
    bytes: count('Bytes of the file before compression'),
    rows: count('Number of rows'),
    created_at: instantSchema('Time of this state of the catalogue'),
    etag: text('Entity tag of the file before compression'),
  }),
);
type ListedExport = z.output<typeof exportSchema>;

const EXAMPLE: ListedExport = {
  file: 'machines.parquet',
  version: 'w2Yv0rIq3c8kT5dJm1xZfA',
  bytes: 2_148_933,
  rows: 48_211,
  created_at: '2026-03-01T04:17:31.220418Z',
  etag: '"9Xk2mVfQb0c1Zt4yLr7pAw8uTq3sEoG5hJ6nBvCdK0M"',
};

const FIRST_FILES_WITHIN_S = 30;
const PLACE_WITHIN_S = 10;

const NOT_MADE = new Problem(503, {
  detail:
    'No files were made yet; try again after the pause in Retry-After. The operator sets in EXPORT_EVERY whether any are made.',
  headers: { 'retry-after': String(FIRST_FILES_WITHIN_S) },
});
const TOO_MANY = new Problem(503, {
  detail: 'As many downloads are under way as may be at once; try again after the pause in Retry-After.',
  headers: { 'retry-after': String(PLACE_WITHIN_S) },
});

export const exportsApi =
  (reader: ExportReader, market: ReadableMarket): ApiFeature =>
  ({ downloadsAtOnce }) => ({
    operations: [listOperation(reader), karpenterOperation(market), openCostOperation(market)],
    streams: [exportDownload(reader, downloadsAtOnce)],
  });

function listOperation(reader: ExportReader): Operation {
  return operation({
    path: '/v1/exports',
    scope: 'machines:read',
    parameters: {},
    isStrict: true,
    doc: {
      id: 'listExports',
      summary: 'Files of the whole catalogue',
      description:
        'All files are of one version. `bytes` and `etag` are those of the file before compression. After the catalogue changes, a new version is made, at most every few minutes; 503 before the first version. The files include sold-out machines: their `available` is 0.',
      answers: () => z.array(exportSchema),
      example: [EXAMPLE],
      extension: true,
    },
    read: async () => listAnswer(await reader.current()),
    shared: true,
  });
}

async function listAnswer(stored: readonly StoredExport[]): Promise<Answer> {
  const [first] = stored;
  if (!first) throw new Unavailable('no files of the catalogue were made yet', FIRST_FILES_WITHIN_S);
  const listed = EXPORT_FILES.flatMap((file) =>
    stored
      .filter((each) => each.coding === 'identity' && each.file === file)
      .map(
        ({ version, bytes, rows, createdAt, hash }): ListedExport => ({
          file,
          version,
          bytes,
          rows,
          created_at: createdAt,
          etag: tagOf(hash),
        }),
      ),
  );
  const body = await encodeBody(Buffer.from(JSON.stringify(listed)));
  return { body, tier: 'postgres', asOf: undefined, currency: first.currency ?? undefined };
}

/** Accepts any text: an unknown name is a 404. */
const fileParameter = parameter(z.string().meta({ enum: EXPORT_FILES }), {
  description: 'Name of the file',
  example: EXAMPLE.file,
  expected: 'one of the names that /v1/exports lists',
});

/** @param downloadsAtOnce of the process; each organization may have half of them */
function exportDownload(exports: ExportReader, downloadsAtOnce: number): StreamOperation {
  const half = Math.ceil(downloadsAtOnce / 2);
  const places = new Places({ process: downloadsAtOnce, organization: half, token: half });
  return streamOperation({
    path: '/v1/exports/{file}',
    scope: 'machines:read',
    parameters: { file: fileParameter },
    isStrict: true,
    doc: {
      id: 'downloadExport',
      summary: 'One file of the whole catalogue',
      description:
        'NDJSON and CSV are compressed with gzip if the client accepts it. `Range` requests a part. With `If-Range` and another version, the answer is the whole newest file. An answer with fewer bytes than its `Content-Length` is incomplete.',
      answers: () => documented(z.string(), { format: 'binary' }),
      types: Object.values(EXPORT_TYPES),
      example: undefined,
      extension: true,
    },
    async open({ file: name }, request) {
      const file = EXPORT_FILES.find((each) => each === name);
      if (file === undefined) return NOT_FOUND;
      const format = file.split('.')[1] as ExportFormat;
      const type = EXPORT_TYPES[format];
      if (!acceptsType(request.headers.accept, type)) return notAcceptable(type);
      const stored = (await exports.current()).filter((each) => each.file === file);
      const [plain] = stored;
      if (!plain) return NOT_MADE;
      const chosen = chooseRepresentation(stored, request) ?? plain;
      const headers = { ...headersOf(chosen), 'content-type': type };
      const known = knownTag(request.headers['if-none-match'], chosen, stored);
      if (known !== undefined) return { status: 304, tier: 'postgres', headers: { ...headers, etag: known } };
      const { bytes } = chosen;
      // Only GET has ranges (RFC 9110, 14.2).
      const range = request.isHead ? undefined : requestedRange(request.headers, tagOf(chosen.hash), bytes);
      if (range === 'unsatisfiable') return unsatisfiable(bytes);
      const { start, end } = range ?? { start: 0, end: bytes };
      const sent: StreamAnswer = {
        status: range ? 206 : 200,
        tier: 'postgres',
        headers: {
          ...headers,
          'content-disposition': `attachment; filename="${file}"`,
          'content-length': String(end - start),
          ...(chosen.coding === 'gzip' && { 'content-encoding': 'gzip' }),
          ...(range && { 'content-range': `bytes ${start}-${end - 1}/${bytes}` }),
        },
      };
      if (request.isHead) return sent;
      if (places.enter(request.grant, request.life)) return TOO_MANY;
      return { ...sent, body: exports.read(chosen, start, end) };
    },
  });
}

function chooseRepresentation(
  stored: readonly StoredExport[],
  { headers }: StreamRequest,
): StoredExport | undefined {
  const header = headers['accept-encoding'];
  for (const coding of allowedCodings(header === undefined ? undefined : String(header))) {
    const found = stored.find((each) => each.coding === coding);
    if (found) return found;
  }
  return undefined;
}

const tagOf = (hash: string): string => `"${hash}"`;

/** Returns the tag of a 304: one of this version in any coding that the client has (RFC 9110, 13.1.2: a weak comparison). */
function knownTag(
  header: string | undefined,
  chosen: StoredExport,
  stored: readonly StoredExport[],
): string | undefined {
  if (header === undefined) return undefined;
  if (header.trim() === '*') return tagOf(chosen.hash);
  const given = new Set([...header.matchAll(/"([^"]*)"/g)].map(([, opaque]) => opaque));
  const found = [chosen, ...stored].find(({ hash }) => given.has(hash));
  return found && tagOf(found.hash);
}

function headersOf({ hash, version, currency }: StoredExport): Record<string, string> {
  return {
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-cache',
    etag: tagOf(hash),
    'fleetbook-export-version': version,
    'fleetbook-tier': 'postgres',
    ...(currency !== null && { 'fleetbook-currency': currency }),
    vary: 'Authorization, Accept-Encoding',
  };
}

function notAcceptable(type: string): Problem {
  return new Problem(406, { detail: `The file is ${type}, which the request does not accept.` });
}

const LIST_MS = 1000;

export type ExportReader = ReturnType<typeof exportReader>;

/** Reads stored files in chunks: no file is ever in memory as a whole. Its methods may reject with `Unavailable`. */
export function exportReader(reads: Pick<PostgresReads, 'run'>, now: () => number) {
  const current: () => Promise<StoredExport[]> = shared(
    () => reads.run((client) => newestExports(databaseOn(client))),
    LIST_MS,
    now,
  );
  return {
    /** Returns all files of the newest version, in every coding; empty before the first version. */
    current,

    /** @throws Error if the file is no longer stored: the earlier chunks are only a part of it */
    async *read(
      { id, file, chunkBytes }: StoredExport,
      start: number,
      end: number,
    ): AsyncGenerator<Buffer, void, undefined> {
      for (let at = start; at < end; ) {
        const position = Math.floor(at / chunkBytes);
        const chunk = await reads.run((client) => exportChunk(databaseOn(client), id, position));
        const from = at - position * chunkBytes;
        const part = chunk?.subarray(from, from + end - at);
        if (!part || part.length === 0)
          throw new Error(`chunk ${position} of ${file} was deleted: two newer versions are stored`);
        yield part;
        at += part.length;
      }
    },
  };
}

export async function newestExports(db: Database): Promise<StoredExport[]> {
  const newest = sql`(select version from ${exports} order by id desc limit 1)`;
  return db
    .select({
      ...getTableColumns(exports),
      file: sql<ExportFile>`${exports.file}`,
      createdAt: rfc3339(exports.createdAt, 'us'),
    })
    .from(exports)
    .where(eq(exports.version, newest))
    .orderBy(asc(exports.id));
}

export async function exportChunk(
  db: ClientDatabase,
  exportId: number,
  position: number,
): Promise<Buffer | undefined> {
  const { data, exportId: ofExport, position: at } = exportChunks;
  const [row] = await executePrepared<{ data: Buffer }>(
    db,
    sql`select ${data} from ${exportChunks} where ${ofExport} = ${exportId} and ${at} = ${position}`,
  );
  return row?.data;
}
