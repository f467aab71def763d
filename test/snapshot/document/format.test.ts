import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EncodedBody } from '../../../src/snapshot/document/answer.ts';
import { encodeBody, hashOf } from '../../../src/snapshot/document/body.ts';
import {
  clustersContent,
  type MachineRow,
  providersContent,
  regionContent,
} from '../../../src/snapshot/document/build.ts';
import {
  type DocumentContent,
  decodeDocument,
  encodeDocument,
  encoding,
  FORMAT,
  HEADER_LENGTH,
  parseHeader,
} from '../../../src/snapshot/document/format.ts';
import { runs } from '../../support/random.ts';

/** Names of any script, with characters that JSON escapes or that need four bytes. */
const text = fc.string({ unit: 'grapheme', maxLength: 20 });

const machine: fc.Arbitrary<Omit<MachineRow, 'id'>> = fc.record({
  name: text,
  ram: fc.integer({ min: 1, max: 128 }),
  cpu: fc.integer({ min: 1, max: 32 }),
  price: fc.double({ min: 1e-12, max: 10, noNaN: true }),
  ramUnit: fc.constantFrom('Binary', 'Decimal'),
});

const region = fc
  .record({
    id: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
    version: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    name: text,
    code: text,
    providerName: text,
    machines: fc.array(machine, { maxLength: 40 }),
    sources: fc.uniqueArray(fc.string({ minLength: 1, maxLength: 8 }), { maxLength: 3 }),
    currency: fc.constantFrom('USD', 'EUR', undefined),
  })
  .map(({ id, version, name, code, providerName, machines, sources, currency }) =>
    regionContent(
      { id, version, name, code, provider: { id: 1, name: providerName } },
      machines.map((row, i) => ({ ...row, id: i + 1 })),
      { sources, currency },
    ),
  );

const same = ({ identity, gzip, br, hash, isPlainOnly }: EncodedBody) => ({
  identity,
  gzip,
  br,
  hash,
  isPlainOnly,
});

const sample = regionContent(
  { id: 7, version: 12, name: 'Zürich', code: 'zrh', provider: { id: 1, name: 'Höst 🚀' } },
  Array.from({ length: 30 }, (_, i) => ({
    id: i + 1,
    name: `größe-${i}`,
    ram: 8,
    cpu: 2,
    price: 0.001,
    ramUnit: 'Binary',
  })),
  { sources: ['b', 'a'], currency: 'EUR' },
);

describe('a stored document', () => {
  it('reads back unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(region, async (content) => {
        const { document, value: make } = encoding(content);
        const value = await make();
        const read = decodeDocument(content.name, value) ?? expect.unreachable('it is a miss');
        expect(read.version).toBe(content.version);
        expect(same(read.body)).toEqual(same(document.body));
        expect(read.body.identity).toEqual(content.body);
        expect(read.sources).toEqual([...content.sources].sort());
        expect(read.currency).toBe(content.currency);
        expect(read.size).toBe(value.length);
        expect(parseHeader(value)).toMatchObject({ version: content.version });
      }),
      { numRuns: runs(100) },
    );
  });

  it('can be used before its body is compressed, and needs more memory afterwards', async () => {
    const { document, value } = encoding(sample);
    let grown = 0;
    document.onGrowth(() => {
      grown += 1;
    });
    expect(same(document.body)).toMatchObject({ identity: sample.body, br: undefined, isPlainOnly: true });
    const plain = document.size;
    await Promise.all([value(), value(), document.body.compress()]);
    const { gzip, br } = document.body;
    expect(document.size).toBe(plain + (gzip?.length ?? 0) + (br?.length ?? 0));
    expect(document.size).toBeGreaterThan(plain);
    expect(grown).toBe(1);
    expect(document.body.isPlainOnly).toBe(false);
  });

  it('has the same bytes whenever it is built from the same rows', async () => {
    await fc.assert(
      fc.asyncProperty(region, async (content) => {
        const [first, second] = await Promise.all([
          encodeDocument(content),
          encodeDocument(structuredCopy(content)),
        ]);
        expect(first.equals(second)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  it('gives the JSON of each element as a slice, for names in any script', async () => {
    await fc.assert(
      fc.asyncProperty(region, async (content) => {
        const value = await encodeDocument(content);
        const read = decodeDocument(content.name, value) ?? expect.unreachable('it is a miss');
        const list = JSON.parse(read.body.identity.toString()) as { id: number }[];
        for (const element of list) {
          const slice = read.slice(String(element.id)) ?? expect.unreachable('no slice');
          expect(slice.identity.toString()).toBe(JSON.stringify(element));
          expect(slice.hash).toBe(hashOf(Buffer.from(JSON.stringify(element))));
          expect([slice.gzip, slice.br]).toEqual([undefined, undefined]);
        }
        expect(read.slice(String(list.length + 1))).toBeUndefined();
        expect(read.keys()).toEqual(list.map(({ id }) => String(id)));
      }),
      { numRuns: runs(100) },
    );
  });

  it('finds clusters by slug, also by a slug that is a property of each object', async () => {
    const cluster = (slug: string) => ({
      name: slug,
      slug,
      region: { name: 'r', code: 'r' },
      provider: { id: 1, name: 'p' },
      status: 'Active',
      shards: 1,
      replicas: 1,
      user: { first_name: '', last_name: '' },
      machine: { ram: 1, cpu: 1, id: 1, ram_unit: 'Binary' as const },
      disks: [],
      created_at: '2022-02-14T10:11:26.567713',
    });
    const content = clustersContent(3, 1, [cluster('constructor'), cluster('a')], { sources: [] });
    const value = await encodeDocument(content);
    const read = decodeDocument(content.name, value) ?? expect.unreachable('it is a miss');
    expect(JSON.parse(read.slice('constructor')?.identity.toString() ?? '').slug).toBe('constructor');
    expect(read.slice('toString')).toBeUndefined();
    expect(read.slice('__proto__')).toBeUndefined();
    expect(read.slice('')).toBeUndefined();
  });

  it('finds each element only by its key, whatever other keys exist', () => {
    const keys = fc.uniqueArray(fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'["],\\1ä') })), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(keys, fc.string({ unit: fc.constantFrom(...'["],\\1ä') }), (there, other) => {
        const elements = there.map((key) => Buffer.from(JSON.stringify({ key })));
        let end = 0;
        const index = new Map(
          there.map((key, i) => {
            const start = end;
            end += elements[i]?.length ?? 0;
            return [key, [start, end]] as const;
          }),
        );
        const body = Buffer.concat(elements);
        const { document } = encoding({ name: { kind: 'providers' }, version: 1, body, index, sources: [] });
        for (const key of there) {
          expect(JSON.parse(document.slice(key)?.identity.toString() ?? '')).toEqual({ key });
        }
        expect(document.keys()).toEqual([...index.keys()]);
        expect(document.slice(other) !== undefined).toBe(there.includes(other));
      }),
      { numRuns: runs(300) },
    );
  });

  it('leads from a provider and a region to the provider in the list of providers', async () => {
    const providers = [1, 2].map((id) => ({
      id,
      name: `p${id}`,
      regions: [{ id: id * 10, name: 'r', code: 'r' }],
    }));
    const content = providersContent(1, providers, { sources: [] }, ['3/30']);
    const document =
      decodeDocument(content.name, await encodeDocument(content)) ??
      expect.unreachable('the value is unusable');
    // A region that no provider lists has no place.
    expect(document.keys()).toEqual(['1/10', '2/20', '3/30']);
    expect(document.slice('2/20')?.identity.toString()).toBe(JSON.stringify(providers[1]));
  });
});

describe('an invalid value is a miss', () => {
  it('if any byte differs', async () => {
    const value = await encodeDocument(sample);
    await fc.assert(
      fc.property(fc.nat(value.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
        const damaged = Buffer.from(value);
        damaged[at] = (damaged[at] ?? 0) ^ change;
        expect(decodeDocument(sample.name, damaged)).toBeUndefined();
      }),
      { numRuns: runs(500) },
    );
  });

  it('if it is truncated or followed by other bytes', async () => {
    const value = await encodeDocument(sample);
    for (const length of [0, 1, 20, HEADER_LENGTH - 1, HEADER_LENGTH, HEADER_LENGTH + 1, value.length - 1]) {
      expect(decodeDocument(sample.name, value.subarray(0, length))).toBeUndefined();
    }
    expect(decodeDocument(sample.name, Buffer.concat([value, Buffer.from('\n')]))).toBeUndefined();
  });

  it('for any bytes at all, without an error', () => {
    const start = Buffer.from(`${FORMAT} 0000000000000001 `);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), (bytes, hasValidStart) => {
        const value = hasValidStart ? Buffer.concat([start, bytes]) : Buffer.from(bytes);
        expect(decodeDocument(sample.name, value)).toBeUndefined();
      }),
    );
  });

  it.each([
    ['an older format', 'FB1'],
    ['a newer format', 'FB3'],
  ])('if it is in %s', async (_, format) => {
    const value = await encodeDocument(sample);
    const other = Buffer.concat([Buffer.from(format), value.subarray(3)]);
    expect(parseHeader(other)).toBeUndefined();
    expect(decodeDocument(sample.name, other)).toBeUndefined();
  });

  it('if its envelope names another document, such as another organization', async () => {
    const value = await encodeDocument(clustersContent(11, 4, [], { sources: [] }));
    expect(decodeDocument({ kind: 'clusters', organizationId: 11 }, value)).toBeDefined();
    expect(decodeDocument({ kind: 'clusters', organizationId: 1 }, value)).toBeUndefined();
    expect(decodeDocument({ kind: 'clusters', organizationId: 111 }, value)).toBeUndefined();
    expect(decodeDocument({ kind: 'region', regionId: 11 }, value)).toBeUndefined();
    expect(decodeDocument({ kind: 'providers' }, value)).toBeUndefined();
  });
});

describe('an encoded body', () => {
  it('has compressed forms of the same content, if they are smaller', async () => {
    const bodies = fc.oneof(
      fc.uint8Array({ maxLength: 4000 }).map((bytes) => Buffer.from(bytes)),
      fc.array(text, { maxLength: 300 }).map((words) => Buffer.from(JSON.stringify(words))),
    );
    await fc.assert(
      fc.asyncProperty(bodies, async (identity) => {
        const body = await encodeBody(identity);
        expect(body.identity).toBe(identity);
        for (const [compressed, open] of [
          [body.gzip, gunzipSync] as const,
          [body.br, brotliDecompressSync] as const,
        ]) {
          if (!compressed) continue;
          expect(compressed.length).toBeLessThan(identity.length);
          expect(open(compressed).equals(identity)).toBe(true);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('is compressed from 1 KiB on', async () => {
    const below = await encodeBody(Buffer.alloc(1023, 'a'));
    expect([below.gzip, below.br]).toEqual([undefined, undefined]);
    const from = await encodeBody(Buffer.alloc(1024, 'a'));
    expect(from.gzip?.length).toBeLessThan(100);
    expect(from.br?.length).toBeLessThan(100);
  });

  it('is sent plain if compression would make it longer', async () => {
    const random = await encodeBody(Buffer.from(crypto.getRandomValues(new Uint8Array(4096))));
    expect([random.gzip, random.br]).toEqual([undefined, undefined]);
  });

  it('has equal hashes only for equal bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.uint8Array(), (a, b) => {
        expect(hashOf(Buffer.from(a)) === hashOf(Buffer.from(b))).toBe(Buffer.from(a).equals(Buffer.from(b)));
        expect(hashOf(Buffer.from(a))).toMatch(/^[A-Za-z0-9_-]{22}$/);
      }),
    );
  });
});

function structuredCopy(content: DocumentContent): DocumentContent {
  return { ...content, body: Buffer.from(content.body), index: new Map(content.index) };
}
