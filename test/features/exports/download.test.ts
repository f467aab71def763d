/** Downloads from PostgreSQL over real sockets. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openStore } from '../../../src/db/connection/connect.ts';
import { exportReader, exportsApi, newestExports } from '../../../src/features/exports/routes.ts';
import { EXPORT_FILES, type ExportFile, type StoredExport } from '../../../src/features/exports/tables.ts';
import type { ReadableMarket } from '../../../src/market/market.ts';
import { PostgresReads } from '../../../src/snapshot/read/postgres-reads.ts';
import { listen, type TestApi, testApi } from '../../http/harness.ts';
import { until } from '../../support/until.ts';
import { addCatalogue, addMany, type ExportScene, openExportScene, raise, storedBytes } from './scene.ts';

const closing = new AsyncDisposableStack();
let scene: ExportScene;
let api: TestApi;
let port: number;
let region: number;
/** The reader's clock is this many milliseconds ahead. */
let ahead = 0;

beforeAll(async () => {
  scene = closing.use(await openExportScene());
  const { sql } = closing.use(openStore({ url: scene.url, role: 'reader', connections: 2 }));
  const logger = pino({ level: 'silent' });
  const reads = new PostgresReads({ sql, logger, now: Date.now, atOnce: 2, deadlineMs: 5000 });
  const exports = exportReader(reads, () => Date.now() + ahead);
  api = closing.use(
    await testApi({
      features: async () => [exportsApi(exports, {} as ReadableMarket)],
      limits: { downloadsAtOnce: 4 },
    }),
  );
  port = await listen(api.app);
});
afterAll(() => closing.disposeAsync());

const fetchPath = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { authorization: `Bearer ${api.token}`, 'accept-encoding': 'identity', ...headers },
  });
const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer());

it('answers 503 with Retry-After before the first files are made', async () => {
  for (const path of ['/v1/exports', '/v1/exports/machines.csv']) {
    const response = await fetchPath(path);
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '30']);
  }
});

describe('once files are made', () => {
  let stored: readonly StoredExport[];
  const of = (file: ExportFile, coding = 'identity') =>
    stored.find((each) => each.file === file && each.coding === coding) ?? expect.unreachable(file);

  beforeAll(async () => {
    region = await addCatalogue(scene.store.sql);
    // 7 MB, which is more text than the sockets of a stalled download buffer: Linux allows 4 MB.
    await addMany(scene.store.sql, region, 3500, 60);
    expect(await scene.make()).toMatchObject({ outcome: 'made' });
    ahead += 2000;
    stored = await newestExports(scene.store.db);
    expect(of('machines.csv').bytes).toBeGreaterThan(3 * of('machines.csv').chunkBytes);
  });

  it('lists files of one version', async () => {
    const response = await fetchPath('/v1/exports');
    expect(response.status).toBe(200);
    expect(response.headers.get('fleetbook-currency')).toBe('USD');
    const listed = (await response.json()) as {
      file: string;
      version: string;
      bytes: number;
      rows: number;
    }[];
    expect(listed.map(({ file }) => file)).toEqual(EXPORT_FILES);
    expect(new Set(listed.map(({ version }) => version)).size).toBe(1);
    const { hash, version, rows, bytes, createdAt } = of('prices.sqlite');
    expect(listed.find(({ file }) => file === 'prices.sqlite')).toEqual({
      file: 'prices.sqlite',
      version,
      bytes,
      rows,
      created_at: createdAt,
      etag: `"${hash}"`,
    });
    const etag = response.headers.get('etag') ?? '';
    expect((await fetchPath('/v1/exports', { 'if-none-match': etag })).status).toBe(304);
  });

  it.each(EXPORT_FILES)('returns the stored bytes of %s, and describes them in headers', async (file) => {
    const response = await fetchPath(`/v1/exports/${file}`);
    const { hash, bytes, version } = of(file);
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      etag: `"${hash}"`,
      'content-length': String(bytes),
      'accept-ranges': 'bytes',
      'fleetbook-export-version': version,
      'content-disposition': `attachment; filename="${file}"`,
      'cache-control': 'private, no-cache',
      vary: 'Authorization, Accept-Encoding',
    });
    expect(response.headers.get('content-encoding')).toBeNull();
    expect((await bytesOf(response)).equals(await storedBytes(scene.store.db, of(file)))).toBe(true);
    const head = await fetchPath(`/v1/exports/${file}`, { range: 'bytes=0-1' }, 'HEAD');
    expect([head.status, head.headers.get('content-length'), (await bytesOf(head)).length]).toEqual([
      200,
      String(bytes),
      0,
    ]);
  });

  it('compresses text for clients that accept gzip, with another tag', async () => {
    const plain = await bytesOf(await fetchPath('/v1/exports/machines.ndjson'));
    const [sent] = await raw('/v1/exports/machines.ndjson', 'Accept-Encoding: gzip, br');
    expect(sent.headers).toMatchObject({
      'content-encoding': 'gzip',
      'content-length': String(of('machines.ndjson', 'gzip').bytes),
      etag: `"${of('machines.ndjson', 'gzip').hash}"`,
    });
    expect(gunzipSync(sent.body).equals(plain)).toBe(true);
    const parquet = await fetchPath('/v1/exports/machines.parquet', { 'accept-encoding': 'gzip' });
    expect(parquet.headers.get('content-encoding')).toBeNull();
    await parquet.body?.cancel();
  });

  it.each(['identity', 'gzip'] as const)('the parts of the %s coding make up the file', async (coding) => {
    const { bytes, hash, chunkBytes } = of('machines.csv', coding);
    const parts: Buffer[] = [];
    const size = coding === 'gzip' ? Math.ceil(bytes / 4) : 3 * chunkBytes - 7;
    for (let start = 0; start < bytes; start += size) {
      const end = Math.min(start + size, bytes);
      const [part] = await raw(
        '/v1/exports/machines.csv',
        `Accept-Encoding: ${coding}`,
        `Range: bytes=${start}-${start + size - 1}`,
        `If-Range: "${hash}"`,
      );
      expect(part.status).toBe(206);
      expect(part.headers['content-range']).toBe(`bytes ${start}-${end - 1}/${bytes}`);
      expect(part.body.length).toBe(end - start);
      parts.push(part.body);
    }
    expect(parts.length).toBeGreaterThan(3);
    expect(Buffer.concat(parts).equals(await storedBytes(scene.store.db, of('machines.csv', coding)))).toBe(
      true,
    );
  });

  it.each([
    ['bytes=-10', 206, 10],
    ['bytes=5-', 206, -5],
    ['bytes=0-0', 206, 1],
    ['bytes=0-999999999999', 206, 0],
    ['bytes=-999999999999', 206, 0],
    ['bytes=0-1,5-6', 200, 0],
    ['bytes=7-5', 200, 0],
    ['rows=0-1', 200, 0],
    ['bytes=-', 200, 0],
    ['bytes=-0', 416, undefined],
    ['bytes=999999999-', 416, undefined],
  ] as const)('Range: %s is answered with %i', async (range, status, length) => {
    const response = await fetchPath('/v1/exports/machines.parquet', { range });
    const { bytes } = of('machines.parquet');
    expect(response.status).toBe(status);
    const body = await bytesOf(response);
    if (length === undefined) expect(response.headers.get('content-range')).toBe(`bytes */${bytes}`);
    else expect(body.length).toBe(length > 0 ? length : bytes + length);
  });

  it('answers 304 to clients that have the version in any coding', async () => {
    const tags = [of('machines.csv').hash, of('machines.csv', 'gzip').hash];
    for (const tag of tags) {
      const response = await fetchPath('/v1/exports/machines.csv', {
        'if-none-match': `"other", W/"${tag}"`,
      });
      expect([response.status, response.headers.get('etag')]).toEqual([304, `"${tag}"`]);
    }
    expect((await fetchPath('/v1/exports/machines.csv', { 'if-none-match': '*' })).status).toBe(304);
    const other = await fetchPath('/v1/exports/machines.csv', { 'if-none-match': '"other"' });
    expect(other.status).toBe(200);
    await other.body?.cancel();
  });

  it('rejects requests as other operations do', async () => {
    const status = async (path: string, headers?: Record<string, string>, method?: string) =>
      (await fetchPath(path, headers, method)).status;
    const file = '/v1/exports/machines.csv';
    expect(await status(file, { authorization: '' })).toBe(401);
    const other = api.tokens.issue({ scopes: ['clusters:read'] });
    expect(await status(file, { authorization: `Bearer ${other}` })).toBe(403);
    expect(await status('/v1/exports/machines.xlsx')).toBe(404);
    expect(await status('/v1/exports/__proto__.csv')).toBe(404);
    expect(await status(file, {}, 'POST')).toBe(405);
    expect(await status(file, { accept: 'application/json' })).toBe(406);
    expect(await status(file, { accept: 'text/*;q=0' })).toBe(406);
    expect(await status(`${file}?version=1`)).toBe(400);
    expect(await status('/v1/exports?limit=1')).toBe(400);
  });

  it('records a download when it ends', async () => {
    const before = api.observed.length;
    await bytesOf(await fetchPath('/v1/exports/machines.sqlite'));
    await until(() => api.observed.length > before);
    expect(api.observed.at(-1)).toMatchObject({ route: '/v1/exports/{file}', status: 200, tier: 'postgres' });
  });

  describe('during downloads', () => {
    const slow: Awaited<ReturnType<typeof stalled>>[] = [];
    beforeEach(() => () => {
      for (const each of slow.splice(0)) each.socket.destroy();
    });

    it('an organization may have half of the places, and frees them', async () => {
      slow.push(await stalled('machines.ndjson'), await stalled('machines.ndjson'));
      const refused = await fetchPath('/v1/exports/prices.csv');
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '10']);
      expect((await fetchPath('/v1/exports/prices.csv', {}, 'HEAD')).status).toBe(200);
      const other = api.tokens.issue({ organizationId: 2 });
      const given = await fetchPath('/v1/exports/prices.csv', { authorization: `Bearer ${other}` });
      expect((await bytesOf(given)).length).toBe(of('prices.csv').bytes);
      slow.pop()?.socket.destroy();
      await until(async () => {
        const again = await fetchPath('/v1/exports/prices.csv');
        await bytesOf(again);
        return again.status === 200;
      });
    });

    it('a download continues with its version after a new one is made', async () => {
      const download = await stalled('machines.ndjson');
      slow.push(download);
      const before = await storedBytes(scene.store.db, of('machines.ndjson'));
      await raise(scene.store.sql, region);
      await scene.store.sql`update machines set price = price * 2`;
      expect(await scene.make()).toMatchObject({ outcome: 'made' });
      ahead += 2000;
      expect((await download.rest()).equals(before)).toBe(true);
    }, 240_000);

    it('a request for a part of the previous version gets the whole new file', async () => {
      const response = await fetchPath('/v1/exports/machines.csv', {
        range: 'bytes=10-20',
        'if-range': `"${of('machines.csv').hash}"`,
      });
      const newest = (await newestExports(scene.store.db)).find(({ file }) => file === 'machines.csv');
      expect(response.status).toBe(200);
      expect((await bytesOf(response)).length).toBe(newest?.bytes);
    });

    it('a download ends early if its token is revoked', async () => {
      const bearer = api.tokens.issue();
      const download = await stalled('machines.ndjson', bearer);
      slow.push(download);
      api.tokens.revoke(bearer);
      const received = await download.rest();
      expect(received.length).toBeLessThan(download.length);
      expect(
        (await fetchPath('/v1/exports/machines.ndjson', { authorization: `Bearer ${bearer}` })).status,
      ).toBe(401);
    });

    it('a download ends early if its version is deleted, and is visibly incomplete', async () => {
      const download = await stalled('machines.ndjson');
      slow.push(download);
      await scene.store.sql`delete from exports`;
      const received = await download.rest();
      expect(received.length).toBeGreaterThan(0);
      expect(received.length).toBeLessThan(download.length);
    });
  });
});

interface Raw {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}

/** Requests a file without decoding its body. */
async function raw(path: string, ...lines: string[]): Promise<[Raw]> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.write(requestOf(path, ['Connection: close', ...lines]));
  const received: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => received.push(chunk));
  await once(socket, 'close');
  const { head, body } = split(Buffer.concat(received));
  return [{ status: Number(head[0]?.split(' ')[1]), headers: fieldsOf(head), body }];
}

/** Starts a download whose client stops reading after the first bytes, until it requests the rest. */
async function stalled(file: ExportFile, bearer = api.token) {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.write(requestOf(`/v1/exports/${file}`, ['Connection: close'], bearer));
  const [first] = (await once(socket, 'data')) as [Buffer];
  socket.pause();
  const received = [first];
  const { head } = split(first);
  return {
    socket,
    length: Number(fieldsOf(head)['content-length']),
    async rest() {
      socket.on('data', (chunk: Buffer) => received.push(chunk));
      socket.on('error', () => {});
      socket.resume();
      await once(socket, 'close');
      return split(Buffer.concat(received)).body;
    },
  };
}

function requestOf(path: string, lines: readonly string[], bearer = api.token): string {
  const all = [`GET ${path} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${bearer}`, ...lines];
  return `${all.join('\r\n')}\r\n\r\n`;
}

function split(bytes: Buffer): { head: string[]; body: Buffer } {
  const end = bytes.indexOf('\r\n\r\n');
  return { head: bytes.toString('latin1', 0, end).split('\r\n'), body: bytes.subarray(end + 4) };
}

const fieldsOf = ([, ...lines]: string[]): Record<string, string> =>
  Object.fromEntries(
    lines.map((line) => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  );
