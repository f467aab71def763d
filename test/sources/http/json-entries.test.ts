import { describe, expect, it } from 'vitest';
import { type EntriesOptions, entriesOf, type JsonEntry } from '../../../src/sources/http/json-entries.ts';
import { SourceError } from '../../../src/sources/source.ts';

async function* piecesOf(...pieces: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield Buffer.from(piece);
}

const maps = ['products', 'terms.OnDemand'];

async function read(
  body: AsyncIterable<Uint8Array>,
  options: Partial<EntriesOptions> = {},
): Promise<JsonEntry[]> {
  const found: JsonEntry[] = [];
  for await (const entry of entriesOf(body, { maps, where: 'the file', ...options })) found.push(entry);
  return found;
}

const document = JSON.stringify({
  version: 'v1',
  list: [{ products: { no: 1 } }, [[]]],
  products: {
    'a "quoted\\" key, é': { x: ['{', '}'], products: { no: 1 } },
    b: [],
    c: 'ü€😀',
    d: 1.5e3,
    e: null,
  },
  terms: { Reserved: { no: {} }, OnDemand: { b: { USD: '1' }, c: {} }, products: { no: 1 } },
  end: { terms: { OnDemand: { no: 1 } } },
});
const entries: JsonEntry[] = [
  { map: 'products', key: 'a "quoted\\" key, é', value: { x: ['{', '}'], products: { no: 1 } } },
  { map: 'products', key: 'b', value: [] },
  { map: 'products', key: 'c', value: 'ü€😀' },
  { map: 'products', key: 'd', value: 1500 },
  { map: 'products', key: 'e', value: null },
  { map: 'terms.OnDemand', key: 'b', value: { USD: '1' } },
  { map: 'terms.OnDemand', key: 'c', value: {} },
];

describe('the entries of maps in a large document', () => {
  it('are those below the given keys from the root, and not others of the same name', async () => {
    expect(await read(piecesOf(document))).toEqual(entries);
    expect(await read(piecesOf(`\ufeff\n ${JSON.stringify(JSON.parse(document), null, 2)}\n`))).toEqual(
      entries,
    );
  });

  it('do not depend on the split into pieces', async () => {
    const bytes = Buffer.from(document);
    for (let at = 0; at <= bytes.length; at++) {
      expect(await read(piecesOf(bytes.subarray(0, at), bytes.subarray(at)))).toEqual(entries);
    }
    const single = Array.from(bytes, (_, index) => bytes.subarray(index, index + 1));
    expect(await read(piecesOf(...single))).toEqual(entries);
  });

  it('are read one by one, as the reader takes them', async () => {
    const taken: string[] = [];
    const yielded: string[][] = [];
    const isWanted = (map: string, key: string) => {
      yielded.push([map, key, taken.join()]);
      return map === 'products' ? key !== 'b' : key === 'b';
    };
    for await (const { key } of entriesOf(piecesOf(document), { maps, where: 'the file', isWanted }))
      taken.push(key);
    expect(taken.slice(1)).toEqual(['c', 'd', 'e', 'b']);
    expect(yielded.at(-1)).toEqual(['terms.OnDemand', 'c', taken.join()]);
  });

  it('are absent if the maps are something else', async () => {
    expect(await read(piecesOf('{"products": [1, {"a": 2}], "terms": {"OnDemand": "none"}}'))).toEqual([]);
    expect(await read(piecesOf('[{"products": {"a": 1}}]'))).toEqual([]);
  });

  it('keep keys that are special in JavaScript objects', async () => {
    const [entry] = await read(piecesOf('{"products":{"__proto__":{"__proto__":1}}}'));
    expect(entry?.key).toBe('__proto__');
    expect(JSON.stringify(entry?.value)).toBe('{"__proto__":1}');
  });
});

describe('a large document', () => {
  it.each([
    ['inside an entry', document.slice(0, document.indexOf('ü'))],
    ['inside an unwanted part', document.slice(0, document.indexOf('Reserved') + 14)],
    ['before its last bracket', document.slice(0, -1)],
  ])('that breaks off %s is retried', async (_, text) => {
    const reading = read(piecesOf(text));
    await expect(reading).rejects.toBeInstanceOf(SourceError);
    await expect(reading).rejects.toMatchObject({
      kind: 'retry',
      message: 'the file answers JSON that ends too early',
    });
  });

  it('that is empty is retried', async () => {
    await expect(read(piecesOf(''))).rejects.toMatchObject({
      kind: 'retry',
      message: 'the file answers an empty body',
    });
  });

  it.each([
    ['is HTML', '\n<!doctype html><p>secret', 'HTML or XML where JSON is expected'],
    ['has an extra comma', '{"products":{"secret":1,,}}', 'no valid JSON'],
    ['is broken in an unwanted part', '{"other":{"secret" 1}}', 'no valid JSON'],
    ['closes an unopened bracket', '{"products":{"secret":[}]}}', 'no valid JSON'],
    ['continues after its end', '{} {"secret": 1}', 'no valid JSON'],
    ['is not text', Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22]), 'text that is no valid UTF-8'],
  ])('that %s is invalid, and not quoted', async (_, text, problem) => {
    const error = await read(piecesOf(text)).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining(`the file answers ${problem}`),
    });
    expect(String(error)).not.toContain('secret');
  });

  it('fails with the error of its body', async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('{"products":{');
      throw new SourceError('retry', 'the connection broke off');
    }
    await expect(read(broken())).rejects.toThrow('the connection broke off');
  });
});
