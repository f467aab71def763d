import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { openSourceHttp } from '../../src/sources/http/http.ts';
import { entriesOf } from '../../src/sources/http/json-entries.ts';
import { PRICE_LIST, priceRowsIn } from '../../src/sources/price-rows.ts';
import { adapter as ecb } from '../../src/sources/rates/ecb.ts';
import { SourceError, type SourceHttp } from '../../src/sources/source.ts';
import { IS_LONG, runs } from '../support/random.ts';
import { type RawUpstream, rawUpstream } from './http/raw-upstream.ts';

const CODINGS: Readonly<Record<string, { header?: string; encode: (body: Buffer) => Buffer }>> = {
  'no coding': { encode: (body) => body },
  gzip: { header: 'gzip', encode: gzipSync },
  'gzip in two members': {
    header: 'x-gzip',
    encode: (body) => Buffer.concat([gzipSync(body.subarray(0, 40)), gzipSync(body.subarray(40))]),
  },
  deflate: { header: 'deflate', encode: deflateSync },
  'raw deflate': { header: 'deflate', encode: deflateRawSync },
  brotli: { header: 'br', encode: brotliCompressSync },
  zstd: { header: 'zstd', encode: zstdCompressSync },
  'deflate within gzip': { header: 'deflate, gzip', encode: (body) => gzipSync(deflateSync(body)) },
};

function chunked(body: Buffer): Buffer {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < body.length; at += 31) {
    const chunk = body.subarray(at, at + 31);
    chunks.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')]);
}

/** The header lines that determine the end of the body, and the body as sent. */
const FRAMINGS: Readonly<
  Record<string, { version: string; head: (length: number) => string; frame: (body: Buffer) => Buffer }>
> = {
  'with its length': {
    version: '1.1',
    head: (length) => `content-length: ${length}\r\nconnection: close\r\n`,
    frame: (body) => body,
  },
  'in chunks': {
    version: '1.1',
    head: () => 'transfer-encoding: chunked\r\nconnection: close\r\n',
    frame: chunked,
  },
  'that ends with its connection': {
    version: '1.1',
    head: () => 'connection: close\r\n',
    frame: (body) => body,
  },
  'of HTTP/1.0': { version: '1.0', head: () => '', frame: (body) => body },
};

const ROWS = Array.from({ length: 12 }, (_, index) => ({ name: `m${index}`, price: `1.34300012${index}` }));
const RATES = { USD: '1.0845', CHF: '0.9375' };

/** The adapters' ways to read a body, with each result. */
const READERS: Readonly<
  Record<string, { body: string; read: (http: SourceHttp) => Promise<unknown>; message: unknown }>
> = {
  'a document in JSON': {
    body: JSON.stringify({ rows: ROWS }),
    read: async (http) => (await http.json('', z.object({ rows: z.array(z.unknown()) }))).data.rows,
    message: ROWS,
  },
  'a large document in JSON': {
    body: JSON.stringify({ rows: Object.fromEntries(ROWS.entries()), more: [1] }),
    read: async (http) => {
      const { body } = await http.stream('');
      const entries = await Array.fromAsync(entriesOf(body, { maps: ['rows'], where: 'there' }));
      return entries.map(({ value }) => value);
    },
    message: ROWS,
  },
  'a price list in CSV': {
    body: `name,price\n${ROWS.map(({ name, price }) => `${name},${price}\n`).join('')}`,
    read: async (http) =>
      (await Array.fromAsync(priceRowsIn(await http.stream('', PRICE_LIST), ['name']))).map(({ row }) => row),
    message: ROWS,
  },
  'a price list in JSON': {
    body: JSON.stringify(ROWS),
    read: async (http) =>
      (await Array.fromAsync(priceRowsIn(await http.stream('', PRICE_LIST), ['name']))).map(({ row }) => row),
    message: ROWS,
  },
  'the reference rates': {
    body: `<?xml version="1.0"?>\n<gesmes:Envelope><Cube><Cube time='2026-11-20'>${Object.entries(RATES)
      .map(([currency, rate]) => `<Cube currency='${currency}' rate='${rate}'/>`)
      .join('')}</Cube></Cube></gesmes:Envelope>\n`,
    read: async (http) => {
      const read = await ecb.rates({ http });
      return 'perEuro' in read ? read.perEuro : read;
    },
    message: RATES,
  },
};

let upstream: RawUpstream;
beforeAll(async () => {
  upstream = await rawUpstream();
});
afterAll(() => upstream[Symbol.asyncDispose]());

type Reader = (typeof READERS)[string];
type Framing = (typeof FRAMINGS)[string];

function respond(header: string | undefined, framing: Framing, length: number, wire: Uint8Array): void {
  const coding = header === undefined ? '' : `content-encoding: ${header}\r\n`;
  const head = `HTTP/${framing.version} 200 OK\r\n${coding}${framing.head(length)}\r\n`;
  upstream.answer = Buffer.concat([Buffer.from(head), wire]);
}

/** The result, or the kind of the failure. */
async function read(reader: Reader): Promise<unknown> {
  const http = openSourceHttp({
    baseUrl: upstream.url,
    credentials: 'none',
    deadlineMs: 5_000,
    maxBytes: 1_000_000,
  });
  return await reader.read(http).catch((error: unknown) => {
    expect(error).toBeInstanceOf(SourceError);
    return (error as SourceError).kind;
  });
}

/** Some positions from everywhere, and all near the end. All readers share the transport: for a change one of them has all positions. */
function cuts(length: number, reader: Reader): number[] {
  const isWhole = IS_LONG || reader === READERS['a document in JSON'];
  const [every, near] = isWhole ? [23, 12] : [97, 2];
  return Array.from({ length }, (_, at) => at).filter((at) => at % every === 0 || at >= length - near);
}

describe.each(Object.entries(READERS))('%s', (_, reader) => {
  const body = Buffer.from(reader.body);
  const isCsv = reader.body.startsWith('name');

  describe.each(Object.entries(FRAMINGS))('%s', (how, framing) => {
    const unframed = !['with its length', 'in chunks'].includes(how);

    it.each(Object.entries(CODINGS))('is read as a whole or retried: %s', async (_coding, coding) => {
      const encoded = coding.encode(body);
      const wire = framing.frame(encoded);
      respond(coding.header, framing, encoded.length, wire);
      expect(await read(reader)).toEqual(isCsv && unframed ? 'retry' : reader.message);
      for (const cut of cuts(wire.length, reader)) {
        respond(coding.header, framing, encoded.length, wire.subarray(0, cut));
        const found = await read(reader);
        if (found !== 'retry') expect([cut, found]).toEqual([cut, reader.message]);
      }
    });
  });

  // A proxy that lost its upstream may send the received part as if it were complete.
  it.each(Object.entries(CODINGS).filter(([, { header }]) => !isCsv || header !== undefined))(
    'is retried if less is sent in a valid form: %s',
    async (_coding, { header, encode }) => {
      const encoded = encode(body);
      for (const framing of Object.values(FRAMINGS)) {
        for (const cut of cuts(encoded.length, reader)) {
          const part = encoded.subarray(0, cut);
          respond(header, framing, part.length, framing.frame(part));
          const found = await read(reader);
          // Between two members gzip states no more than plain text.
          if (isCsv && header === 'x-gzip' && cut === gzipSync(body.subarray(0, 40)).length) continue;
          if (found !== 'retry') expect([cut, found]).toEqual([cut, reader.message]);
        }
      }
    },
  );
});

it('no cut of any list, in any encoding, yields fewer rows or another value', async () => {
  const lists = fc.array(
    fc.record({ name: fc.stringMatching(/^[a-zäß]{1,8}$/), price: fc.stringMatching(/^\d{1,3}\.\d{1,12}$/) }),
    { minLength: 1, maxLength: 30 },
  );
  const codings = fc.constantFrom(...Object.values(CODINGS));
  const framings = fc.constantFrom(...Object.values(FRAMINGS));
  const forms = fc.constantFrom<'csv' | 'json'>('csv', 'json');
  const property = fc.asyncProperty(
    lists,
    codings,
    framings,
    forms,
    fc.double({ min: 0, max: 1, noNaN: true }),
    async (rows, { header, encode }, framing, form, share) => {
      const csv = () => `name,price\n${rows.map(({ name, price }) => `${name},${price}`).join('\n')}\n`;
      const encoded = encode(Buffer.from(form === 'csv' ? csv() : JSON.stringify(rows)));
      const wire = framing.frame(encoded);
      respond(header, framing, encoded.length, wire.subarray(0, Math.floor(share * wire.length)));
      const found = await read({
        body: '',
        message: rows,
        read: async (http) =>
          (await Array.fromAsync(priceRowsIn(await http.stream('', PRICE_LIST), ['name']))).map(
            ({ row }) => row,
          ),
      });
      if (found !== 'retry') expect(found).toEqual(rows);
    },
  );
  await fc.assert(property, { numRuns: runs(300) });
});

describe('a broken body', () => {
  const reader = READERS['a document in JSON'] as Reader;
  const length = FRAMINGS['with its length'] as Framing;
  const zipped = (at: number, value: number) => {
    const bytes = gzipSync(reader.body);
    bytes[at] = value;
    return bytes;
  };

  it.each([
    ['in the middle of its JSON', undefined, Buffer.from(reader.body.replace('"m5"', '"m5'))],
    ['in the middle of its gzip', 'gzip', zipped(12, 0xff)],
    ['in the checksum of its gzip', 'gzip', zipped(gzipSync(reader.body).length - 6, 0x11)],
    ['after the end of its gzip', 'gzip', Buffer.concat([gzipSync(reader.body), Buffer.from('more')])],
    [
      'after the end of its brotli',
      'br',
      Buffer.concat([brotliCompressSync(reader.body), Buffer.from('more')]),
    ],
    [
      'after the end of its deflate',
      'deflate',
      Buffer.concat([deflateSync(reader.body), Buffer.from('more')]),
    ],
    ['in another coding than it names', 'gzip', Buffer.from(reader.body)],
    ['in an unknown coding', 'sdch', Buffer.from(reader.body)],
  ])('%s is invalid', async (_, header, bytes) => {
    respond(header, length, bytes.length, bytes);
    expect(await read(reader)).toBe('invalid');
  });

  it('is valid if zeros follow the end of its gzip', async () => {
    const bytes = Buffer.concat([gzipSync(reader.body), Buffer.alloc(20)]);
    respond('gzip', length, bytes.length, bytes);
    expect(await read(reader)).toEqual(reader.message);
  });
});

it('requests only codings with a detectable end', async () => {
  const reader = READERS['a document in JSON'] as Reader;
  const body = Buffer.from(reader.body);
  respond(undefined, FRAMINGS['with its length'] as Framing, body.length, body);
  await read(reader);
  expect(upstream.heads.at(-1)?.toLowerCase()).toMatch(/\r\naccept-encoding: gzip, deflate, br\r\n/);
});
