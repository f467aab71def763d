import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openSourceHttp } from '../../src/sources/http/http.ts';
import { PRICE_LIST, type PriceRow, priceRowsIn } from '../../src/sources/price-rows.ts';
import { SourceError } from '../../src/sources/source.ts';
import { type FakeAnswer, fakeUpstream } from '../support/fake-upstream.ts';

const LIMITS = { credentials: 'none', deadlineMs: 5_000, maxBytes: 1_000 } as const;

async function read(answer: FakeAnswer, columns: readonly string[] = ['name']): Promise<PriceRow[]> {
  await using upstream = await fakeUpstream();
  upstream.expect({ path: '/list', headers: { accept: 'text/csv, application/json' } }, answer);
  const http = openSourceHttp({ ...LIMITS, baseUrl: `${upstream.url}/list` });
  return await Array.fromAsync(priceRowsIn(await http.stream('', PRICE_LIST), columns));
}

async function failure(answer: FakeAnswer, columns?: readonly string[]): Promise<SourceError> {
  const error = await read(answer, columns).then(
    () => expect.unreachable('it was read as if nothing was wrong'),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(SourceError);
  return error as SourceError;
}

describe('a price list in CSV', () => {
  it('accepts columns in any order and case, and skips empty values', async () => {
    expect(await read({ raw: 'Price,NAME,note\r\n0.5,a,\r\n,b,x\r\n' })).toEqual([
      { at: 'line 2', row: { price: '0.5', name: 'a' } },
      { at: 'line 3', row: { name: 'b', note: 'x' } },
    ]);
  });

  it('may have commas, quotes and line breaks in a quoted value, and counts lines correctly', async () => {
    const raw = 'name,note\r\n"a, b","says ""c"""\r\nd,"one\r\ntwo\nthree"\r\n\r\n\r\ne,f\r\n';
    expect(await read({ raw })).toEqual([
      { at: 'line 2', row: { name: 'a, b', note: 'says "c"' } },
      { at: 'line 3', row: { name: 'd', note: 'one\r\ntwo\nthree' } },
      { at: 'line 8', row: { name: 'e', note: 'f' } },
    ]);
  });

  it.each([
    ['a byte order mark', '\ufeffname\na\nb\n'],
    ['mixed line ends', 'name\r\na\nb\r'],
    ['no end of the last line', 'name\na\nb'],
    ['blanks around its values', ' name \n a\n"b" \n'],
    ['empty lines before the first', '\n\nname\na\nb\n'],
  ])('may have %s', async (_, raw) => {
    expect((await read({ raw })).map(({ row }) => row)).toEqual([{ name: 'a' }, { name: 'b' }]);
  });

  it('is independent of the upstream’s split into pieces', async () => {
    await using at = await mkdtempDisposable(join(tmpdir(), 'fleetbook-prices-'));
    const path = join(at.path, 'prices.csv');
    const names = Array.from({ length: 20_000 }, (_, index) => `größe-${index}`);
    await writeFile(path, `name\n${names.join('\n')}\n`);
    const answer = await openSourceHttp({ ...LIMITS, baseUrl: path }).stream('', PRICE_LIST);
    const rows = await Array.fromAsync(priceRowsIn(answer, ['name']));
    expect(rows.map(({ row }) => row)).toEqual(names.map((name) => ({ name })));
    expect(rows.at(-1)?.at).toBe('line 20001');
  });

  it('reports a row with too many or too few values, and uses none of its values', async () => {
    const rows = await read({ raw: 'name,note\na,b,c\nd\ne,f\n' });
    expect(rows).toEqual([
      {
        at: 'line 2',
        row: undefined,
        problem: 'has 3 values where the first line names 2 columns; quote a value that holds a comma',
      },
      { at: 'line 3', row: undefined, problem: expect.stringContaining('has 1 values') },
      { at: 'line 4', row: { name: 'e', note: 'f' } },
    ]);
  });

  it.each([
    ['lacks a column', 'name,prize\na,1\n', /names no column price; it must name name, price$/],
    ['has another separator', 'name;price\na;1\n', /no column name, price; .*separated by commas$/],
    ['repeats a column', 'name,price,Name\na,1,b\n', /names the column name twice$/],
    ['has an unclosed quote', 'name,price\na,1\n"b,2\nc,3\n', /a quote is never closed$/],
    ['has a quote inside a value', 'name,price\na,1\nb"c,2\n', /at line 3: a quote is inside a value/],
    ['has text after a quote', 'name,price\n"a"b,1\n', /at line 2: a quote is inside a value/],
    ['has an overlong line', `name,price\n"${'x'.repeat(200_000)}",1`, /longer than 100000 characters/],
    ['has only column names', 'name,price\n', /lists nothing/],
    ['is in another encoding', Buffer.from('name,price\nGr\xf6\xdfe,1\n', 'latin1'), /is not text in UTF-8/],
  ])('that %s is invalid as a whole', async (_, raw, message) => {
    const failed = await failure({ raw }, ['name', 'price']);
    expect(failed.kind).toBe('invalid');
    expect(failed.message).toMatch(message);
  });

  it('that was cut at the end of a row is never accepted as whole', async () => {
    const raw = 'name\na\nb\nc\n';
    for (const framing of ['length', 'chunked', 'close'] as const) {
      expect(await failure({ raw, cutAfter: 9, framing })).toMatchObject({ kind: 'retry' });
    }
    expect((await failure({ raw, framing: 'close' })).message).toContain('without its length');
    expect(await read({ raw, framing: 'chunked' })).toHaveLength(3);
  });
});

it.each(['', '\n \n'])('an empty price list (%j) is truncated or not yet written', async (raw) => {
  expect(await failure({ raw })).toMatchObject({
    kind: 'retry',
    message: expect.stringContaining('is empty'),
  });
});

describe('a price list in JSON', () => {
  it('is recognized by its first character, after any white space', async () => {
    const raw = '\ufeff\n  [{"name":"a"},{"name":"b","more":1},7]';
    expect(await read({ raw, framing: 'close' })).toEqual([
      { at: 'row 1', row: { name: 'a' } },
      { at: 'row 2', row: { name: 'b', more: 1 } },
      { at: 'row 3', row: 7 },
    ]);
  });

  it.each([
    ['is an object', '{"name":"a"}', /must be a list of rows/],
    ['is broken', '[{"name"]}', /no valid JSON/],
    ['lists nothing', '[]', /lists nothing/],
    ['is HTML', '\n<html></html>', /HTML or XML/],
  ])('that %s is invalid', async (_, raw, message) => {
    const failed = await failure({ raw });
    expect(failed.kind).toBe('invalid');
    expect(failed.message).toMatch(message);
  });
});

it('a missing or non-file price list reports it', async () => {
  await using at = await mkdtempDisposable(join(tmpdir(), 'fleetbook-prices-'));
  const read = async (path: string) => {
    const answer = await openSourceHttp({ ...LIMITS, baseUrl: path }).stream('', PRICE_LIST);
    return Array.fromAsync(priceRowsIn(answer, ['name']));
  };
  const path = join(at.path, 'prices.csv');
  await expect(read(path)).rejects.toMatchObject({ kind: 'gone', message: expect.stringContaining(path) });
  await expect(read(at.path)).rejects.toMatchObject({ kind: 'misconfigured' });
  await writeFile(path, '');
  await expect(read(path)).rejects.toMatchObject({
    kind: 'retry',
    message: `${path} is empty, which is never taken for "all gone"`,
  });
});
