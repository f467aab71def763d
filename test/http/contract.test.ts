import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { testApi } from './harness.ts';
import { AS_OF, CLUSTERS } from './readers.ts';

const api = await testApi();
afterAll(() => api[Symbol.asyncDispose]());

const bearer = { authorization: `Bearer ${api.token}` };
const LARGE = '/v1/machines?provider=5&region=4';

function get(url: string, headers: Record<string, string> = {}) {
  return api.app.inject({ url, headers: { ...bearer, ...headers } });
}

describe('the documents', () => {
  it('a machine has exactly the fields of the contract', async () => {
    expect((await get('/v1/machines/300')).json()).toEqual({
      id: 300,
      name: 'cax11',
      ram: 4,
      cpu: 2,
      price: 0.000103791666666667,
      ram_unit: 'Decimal',
      provider: { id: 5, name: 'Hetzner' },
      region: { id: 3, name: 'Falkenstein', code: 'fsn1' },
    });
  });

  it('an organization sees all its clusters, and only those', async () => {
    for (const organizationId of [1, 2, 3]) {
      const authorization = `Bearer ${api.tokens.issue({ organizationId })}`;
      expect((await get('/v1/clusters', { authorization })).json()).toEqual(CLUSTERS[organizationId]);
    }
  });

  it('one cluster is found by its slug', async () => {
    expect((await get('/v1/clusters/groesse-sued')).json()).toEqual(CLUSTERS[1]?.[1]);
  });

  it('providers have the ids of the machines’ parameter', async () => {
    const [provider] = (await get('/v1/providers')).json();
    const list = await get(`/v1/machines?provider=${provider.id}&region=${provider.regions[0].id}`);
    expect(list.json()).toHaveLength(3);
  });

  it('only published machines have prices', async () => {
    expect((await get('/v1/machines/300/prices')).json()).toEqual([
      { price: 0.0001, from: '2026-03-01T04:17:02.114392Z', to: null },
    ]);
    expect((await get('/v1/machines/999/prices')).statusCode).toBe(404);
  });
});

const NOT_IDS = [
  '',
  '0',
  '-1',
  '+1',
  '01',
  '1.0',
  '1e1',
  '0x10',
  '%205',
  '5%20',
  '5%0A',
  'one',
  '١',
  '%D9%A1',
  '2147483648',
  '9999999999',
  '99999999999999999999',
  'null',
  'true',
];

const REFUSED: readonly (readonly [query: string, parameter: string])[] = [
  ['', 'provider'],
  ['?', 'provider'],
  ['?region=3', 'provider'],
  ['?provider=5', 'region'],
  ['?provider=5&provider=5&region=3', 'provider'],
  ['?provider=5&region=3&region=4', 'region'],
  ['?provider[]=5&region=3', 'provider'],
  ['?Provider=5&region=3', 'provider'],
  ['?__proto__=1&region=3', 'provider'],
  ...NOT_IDS.map((text) => [`?provider=${text}&region=3`, 'provider'] as const),
  ...NOT_IDS.map((text) => [`?provider=5&region=${text}`, 'region'] as const),
];

describe('the parameters of /v1/machines', () => {
  it.each(REFUSED)('%s is a 400 that names %s and its value', async (query, parameter) => {
    const response = await get(`/v1/machines${query}`);
    expect(response.statusCode).toBe(400);
    expect(response.headers['content-type']).toBe('application/problem+json');
    expect(response.json()).toEqual({
      type: 'urn:fleetbook:problem:invalid-parameter',
      title: 'Invalid parameter',
      status: 400,
      detail: expect.stringMatching(
        new RegExp(
          `^The query parameter "${parameter}" must be given once, as a positive 32-bit integer in decimal digits(, not ".*"|; it was given 2 times)?\\. See /v1/providers\\.$`,
        ),
      ),
      parameter,
      instance: response.headers['x-request-id'],
    });
  });

  it.each([
    ['an unknown provider', '?provider=77&region=3'],
    ['an unknown region', '?provider=5&region=77'],
    ['the largest id', '?provider=2147483647&region=2147483647'],
  ])('%s: an empty list', async (_, query) => {
    const response = await get(`/v1/machines${query}`);
    expect([response.statusCode, response.body]).toEqual([200, '[]']);
  });

  it('ignores other parameters, and decodes encoded ones', async () => {
    const plain = await get('/v1/machines?provider=5&region=3');
    const odd = await get('/v1/machines?x=1&provider=%35&x=2&region=3&limit=0&%ff');
    expect([odd.statusCode, odd.body]).toEqual([200, plain.body]);
  });
});

describe('/v1/machines/{id}', () => {
  it.each(NOT_IDS)('%j is not an id: 400', async (text) => {
    for (const rest of ['', '/prices']) {
      const response = await get(`/v1/machines/${text}${rest}`);
      expect(response.statusCode).toBe(400);
      expect(response.json()).toMatchObject({ parameter: 'id', status: 400 });
    }
  });

  it('is identified only by the path', async () => {
    const plain = await get('/v1/machines/300');
    const odd = await get('/v1/machines/300?id=301');
    expect([odd.statusCode, odd.body]).toEqual([200, plain.body]);
  });

  it.each(['1', '999', '2147483647'])('%s is in no catalogue: 404', async (text) => {
    expect((await get(`/v1/machines/${text}`)).statusCode).toBe(404);
  });
});

describe('a cluster that is not visible to the caller', () => {
  it.each([
    ["another organization's", 'elsewhere'],
    ['none', 'no-such'],
    ['an empty slug', ''],
    ['a prefix', 'cluster'],
    ['another spelling', 'Cluster-Test'],
    ['blanks', '%20cluster-test'],
    ['a slash', 'cluster%2Ftest'],
    ['a parent path', '..%2F..%2Fetc'],
    ['a NUL', 'cluster-test%00'],
    ['a line break', '%0D%0Ax'],
    ['a percent sign', '%25'],
    ['an encoded percent sign with more text', '%2525%252F'],
    ['unicode', encodeURIComponent('größe-süd-🚀')],
    ['invalid UTF-8', '%ff%fe'],
    ['half a character', '%C3'],
    ['SQL', encodeURIComponent("' or 1=1 --")],
    ['a property of all objects', '__proto__'],
    ['a key of the index', '0'],
    ['ten thousand characters', 'a'.repeat(10_000)],
    ['ten thousand encoded ones', '%61'.repeat(9_000)],
  ])('%s: the same 404', async (_, slug) => {
    const headers = { 'x-request-id': 'same' };
    const [response, other] = [
      await get(`/v1/clusters/${slug}`, headers),
      await get('/v1/clusters/x', headers),
    ];
    expect(response.statusCode).toBe(404);
    expect(response.body).toBe(other.body);
    expect({ ...response.headers, date: '' }).toEqual({ ...other.headers, date: '' });
  });
});

describe('every answer', () => {
  it('states its tier, its freshness, and how it may be cached', async () => {
    const { headers } = await get('/v1/machines/300');
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'private, no-cache',
      vary: 'Authorization, Accept-Encoding',
      'fleetbook-as-of': AS_OF,
      'fleetbook-tier': 'memory',
    });
  });

  it.each(['abc', 'A-1_b.c', 'x'.repeat(128)])('has the caller’s request id %s', async (id) => {
    const found = await get('/v1/clusters', { 'x-request-id': id });
    const missing = await get('/v1/clusters/x', { 'x-request-id': id });
    expect([found.headers['x-request-id'], missing.headers['x-request-id'], missing.json().instance]).toEqual(
      [id, id, id],
    );
  });

  it.each(['', 'a b', 'a"b', 'a:b', 'x'.repeat(129), 'ü'])('has a new id instead of %j', async (id) => {
    const given = (await get('/v1/clusters', { 'x-request-id': id })).headers['x-request-id'];
    expect(given).toMatch(/^[\w-]{16}\.\d+$/);
  });

  it.each(['text/html', 'application/json;q=0', 'application/xml, */*;q=0'])(
    'is 406 to Accept: %s',
    async (accept) => {
      for (const url of [
        '/v1/clusters',
        '/v1/clusters/x',
        '/v1/machines',
        '/healthz',
        '/readyz',
        '/openapi.json',
      ]) {
        expect((await get(url, { accept })).statusCode).toBe(406);
      }
    },
  );

  it.each(['identity;q=0', '*;q=0'])('is 406 to Accept-Encoding: %s, at any size', async (coding) => {
    for (const url of [LARGE, '/v1/machines/300']) {
      expect((await get(url, { 'accept-encoding': coding })).statusCode).toBe(406);
    }
  });
});

describe('HEAD', () => {
  it.each([
    ['/v1/providers'],
    [LARGE],
    ['/v1/machines/300'],
    ['/v1/machines/300/prices'],
    ['/v1/machines/x'],
    ['/v1/machines'],
    ['/v1/clusters'],
    ['/v1/clusters/cluster-test'],
    ['/v1/clusters/none'],
    ['/v1/nothing'],
    ['/healthz'],
    ['/readyz'],
    ['/openapi.json'],
  ])('%s has the status and header fields of GET and no body', async (url) => {
    for (const extra of [
      {},
      { 'accept-encoding': 'br' },
      { 'if-none-match': '*' },
      { accept: 'text/html' },
    ]) {
      const headers = { ...bearer, 'x-request-id': 'same', ...extra };
      const whole = await api.app.inject({ url, headers });
      const head = await api.app.inject({ method: 'HEAD', url, headers });
      const { date: _, ...expected } = whole.headers;
      const { date: __, ...found } = head.headers;
      expect([head.statusCode, found, head.body]).toEqual([whole.statusCode, expected, '']);
      if (whole.statusCode !== 304) expect(Number(found['content-length'])).toBe(whole.rawPayload.length);
    }
  });
});

describe('the codings of a body', () => {
  it('are the same content under different strong tags', async () => {
    const plain = await get(LARGE);
    const gzip = await get(LARGE, { 'accept-encoding': 'gzip' });
    const br = await get(LARGE, { 'accept-encoding': 'gzip, br' });
    expect(gunzipSync(gzip.rawPayload).equals(plain.rawPayload)).toBe(true);
    expect(brotliDecompressSync(br.rawPayload).equals(plain.rawPayload)).toBe(true);
    expect([plain, gzip, br].map(({ headers }) => headers['content-encoding'])).toEqual([
      undefined,
      'gzip',
      'br',
    ]);
    const hash = String(plain.headers.etag).slice(1, -1);
    expect(hash).toMatch(/^[\w-]{22}$/);
    expect([plain, gzip, br].map(({ headers }) => headers.etag)).toEqual([
      `"${hash}"`,
      `"${hash}-gzip"`,
      `"${hash}-br"`,
    ]);
  });

  it('do not exist for a small body', async () => {
    const response = await get('/v1/machines/300', { 'accept-encoding': 'br, gzip' });
    expect(response.headers['content-encoding']).toBeUndefined();
    expect(response.json().id).toBe(300);
  });

  const CODINGS = ['identity', 'gzip', 'br'];
  it.each(CODINGS.flatMap((held) => CODINGS.map((accepted) => [held, accepted] as const)))(
    'a client that has %s and accepts %s gets 304 with its tag',
    async (held, accepted) => {
      const { headers } = await get(LARGE, { 'accept-encoding': held });
      const etag = String(headers.etag);
      for (const condition of [etag, `W/${etag}`, `"other", ${etag}`]) {
        const response = await get(LARGE, { 'accept-encoding': accepted, 'if-none-match': condition });
        expect([response.statusCode, response.body]).toEqual([304, '']);
        expect(response.headers).toMatchObject({
          etag,
          'cache-control': 'private, no-cache',
          vary: 'Authorization, Accept-Encoding',
          'fleetbook-as-of': AS_OF,
          'fleetbook-tier': 'memory',
        });
        expect(response.headers).not.toHaveProperty('content-length');
        expect(response.headers).not.toHaveProperty('content-type');
      }
    },
  );

  it('a client with another version gets the whole answer', async () => {
    expect((await get(LARGE, { 'if-none-match': '"other"' })).statusCode).toBe(200);
  });

  it('an error is never 304', async () => {
    expect((await get('/v1/clusters/x', { 'if-none-match': '*' })).statusCode).toBe(404);
  });
});
