import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { elementsOf, entriesOf } from '../../../src/sources/http/json-entries.ts';
import { PRICE_LIST, priceRowsIn } from '../../../src/sources/price-rows.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';

const MEBIBYTE = 1024 * 1024;
const LIMITS = { credentials: 'none', deadlineMs: 60_000, maxBytes: 64 * MEBIBYTE } as const;

/** A list of `count` of these elements. */
const listOf = (element: string, count: number) => `[${Array(count).fill(element).join(',')}]`;

/** Payloads that exceed one limit each, with the text of the error. */
const PAYLOADS: readonly (readonly [bound: string, payload: string, message: RegExp])[] = [
  ['nesting', `[${'['.repeat(64)}${']'.repeat(64)}]`, /lists and objects of more than 64 levels/],
  ['the length of a number', `[{"n":1${'0'.repeat(100)}}]`, /a number of more than 100 characters/],
  [
    'the length of a string',
    `[{"n":"${'x'.repeat(MEBIBYTE + 1)}"}]`,
    /a string or a key of more than 1048576/,
  ],
  ['the length of a key', `[{"${'x'.repeat(MEBIBYTE + 1)}":1}]`, /a string or a key of more than 1048576/],
];

/** Payloads exactly at these limits. */
const WITHIN = [
  `[${'['.repeat(63)}${']'.repeat(63)}]`,
  `[{"n":1${'0'.repeat(99)}}]`,
  `[{"n":"${'\\"'.repeat(1000)}${'x'.repeat(50_000)}","m":"[[{\\\\"}]`,
];

async function* piecesOf(payload: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(payload);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe('JSON that is read as a whole', () => {
  async function read(payload: string): Promise<unknown> {
    await using upstream = await fakeUpstream();
    const headers = { 'content-encoding': 'gzip' };
    upstream.expect({ path: '/list' }, { raw: gzipSync(payload), headers });
    return (await openSourceHttp({ ...LIMITS, baseUrl: upstream.url }).json('/list', z.unknown())).data;
  }

  it.each(PAYLOADS)('has a limit of %s', async (_, payload, message) => {
    await expect(read(payload)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringMatching(message),
    });
    await expect(read(payload)).rejects.toThrow("check the source's URL");
  });

  it('has a limit of its values, so that no small body becomes a large heap', async () => {
    await expect(read(listOf('{}', 2_000_001))).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringMatching(/^http:.*\/list answers JSON with more than 2000000 values.*split/),
    });
  });

  it.each(WITHIN)('may be as large as the limits (%#)', async (payload) => {
    expect(await read(payload)).toEqual(JSON.parse(payload));
  });
});

describe('JSON that is read as a stream', () => {
  const read = (payload: string, size: number) => Array.fromAsync(elementsOf(piecesOf(payload, size), 'x'));

  it.each(PAYLOADS)('has a limit of %s, for any split into pieces', async (_, payload, message) => {
    for (const size of [65_536, 16_384, 1000])
      await expect(read(payload, size)).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringMatching(message),
      });
  });

  it.each(WITHIN)('equals JSON that is read as a whole (%#)', async (payload) => {
    for (const size of [65_536, 7]) expect(await read(payload, size)).toEqual(JSON.parse(payload));
  });

  it('has the elements of a list in order, of any kind', async () => {
    const list = [{ a: [1, { b: null }] }, [], 'x', 1.5, null, true, { c: '[' }];
    for (const size of [1, 3, 1000]) expect(await read(JSON.stringify(list), size)).toEqual(list);
    expect(await read(' [ ] ', 1)).toEqual([]);
  });

  it.each([
    ['is an object', '{"a":[1]}', 'invalid'],
    ['is a text', '"a"', 'invalid'],
    ['is broken', '[1,]', 'invalid'],
    ['continues after its end', '[1] 2', 'invalid'],
    ['breaks off', '[1,{"a"', 'retry'],
    ['is empty', '', 'retry'],
  ])('fails if it %s', async (_, payload, kind) => {
    for (const size of [1, 1000]) await expect(read(payload, size)).rejects.toMatchObject({ kind });
  });

  it('has a limit for one element and one entry of a map', async () => {
    const row = JSON.stringify({ values: Array(60_000).fill('a') });
    await expect(read(`[1,${row}]`, 65_536)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringMatching(/^row 2 of x has more than 100000 characters and values/),
    });
    const entry = JSON.stringify({ products: { a: Array(2_500_000).fill('a') } });
    const entries = entriesOf(piecesOf(entry, 65_536), { maps: ['products'], where: 'x' });
    await expect(Array.fromAsync(entries)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringMatching(/^an entry of products in x has more than 4194304 characters/),
    });
  });
});

describe('a price list', () => {
  async function rowsOf(payload: string): Promise<number> {
    await using upstream = await fakeUpstream();
    const headers = { 'content-encoding': 'gzip' };
    upstream.expect({ path: '/list' }, { raw: gzipSync(payload), headers });
    const http = openSourceHttp({ ...LIMITS, baseUrl: `${upstream.url}/list` });
    let count = 0;
    for await (const _ of priceRowsIn(await http.stream('', PRICE_LIST), ['n'])) count += 1;
    return count;
  }

  it.each([
    ['JSON', listOf('{}', 250_001)],
    ['CSV', `n\n${'x\n'.repeat(250_001)}`],
  ])(
    'in %s has a limit of its rows',
    async (_, payload) => {
      await expect(rowsOf(payload)).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringMatching(/\/list lists more than 250000 rows.*split it into several sources/),
      });
    },
    300_000,
  );
});
