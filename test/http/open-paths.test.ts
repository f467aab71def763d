import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { testApi } from './harness.ts';

describe('/healthz', () => {
  it('is 200 as long as the process answers, ready or not', async () => {
    await using api = await testApi({
      readiness: async () => ({ ready: false, checks: { catalogue: 'missing' } }),
    });
    const response = await api.app.inject({ url: '/healthz' });
    expect([response.statusCode, response.body]).toEqual([200, '{"status":"ok"}']);
    expect(response.headers['cache-control']).toBe('no-store');
  });
});

describe('/readyz', () => {
  it('states the results of its checks', async () => {
    const checks = { catalogue: 'ok', cache: 'not linked: no worker reaches it' };
    await using api = await testApi({ readiness: async () => ({ ready: true, checks }) });
    const response = await api.app.inject({ url: '/readyz' });
    expect([response.statusCode, response.json()]).toEqual([200, { status: 'ready', checks }]);
  });

  it('is a 503 that names the missing part', async () => {
    const checks = { catalogue: 'not published yet', cache: 'ok' };
    await using api = await testApi({ readiness: async () => ({ ready: false, checks }) });
    const response = await api.app.inject({ url: '/readyz' });
    expect(response.statusCode).toBe(503);
    expect(response.headers['retry-after']).toBe('1');
    expect(response.json()).toMatchObject({
      type: 'urn:fleetbook:problem:not-ready',
      detail: 'Not ready to answer: catalogue.',
      checks,
    });
  });

  it.each([
    ['fails', () => Promise.reject(new Error('secret'))],
    ['hangs', () => new Promise<never>(() => {})],
  ])('is a 503 if the check itself %s', async (_, readiness) => {
    await using api = await testApi({ readiness, limits: { answerTimeoutMs: 30 } });
    const response = await api.app.inject({ url: '/readyz' });
    expect(response.statusCode).toBe(503);
    expect(response.body).not.toContain('secret');
  });
});

type Json = { readonly [key: string]: Json } & Json[] & string;

describe('/openapi.json', () => {
  async function read() {
    await using api = await testApi();
    return (await api.app.inject({ url: '/openapi.json' })).json() as Json;
  }

  /** The schema with each reference resolved, as for a validator. */
  function validator(document: Json, schema: unknown): z.ZodType {
    const inlined = (part: unknown): unknown =>
      JSON.parse(JSON.stringify(part), (_, value) =>
        typeof value?.$ref === 'string' ? inlined(resolve(document, value.$ref)) : value,
      );
    return z.fromJSONSchema(inlined(schema) as Parameters<typeof z.fromJSONSchema>[0]);
  }

  function resolve(document: Json, reference: string): unknown {
    let found: Json | undefined = document;
    for (const part of reference.replace(/^#\//, '').split('/')) found = found?.[part];
    return found ?? expect.fail(`${reference} leads nowhere`);
  }

  it('names the release, and gives every operation a unique id', async () => {
    const document = await read();
    expect(document).toMatchObject({ openapi: '3.1.1', info: { version: '1.2.3' } });
    const operations = Object.values(document.paths ?? {}).map(({ get }) => get?.operationId);
    expect(Object.keys(document.paths ?? {})).toEqual([
      '/v1/providers',
      '/v1/machines',
      '/v1/machines/{id}',
      '/v1/machines/{id}/prices',
      '/v1/clusters',
      '/v1/clusters/{slug}',
      '/v1/machines/search',
      '/v1/machines/first-available',
      '/v1/machines/recommend',
      '/healthz',
      '/readyz',
      '/openapi.json',
    ]);
    expect(new Set(operations).size).toBe(operations.length);
  });

  it('lists as extensions exactly the operations outside of the contract', async () => {
    const { paths } = await read();
    const extensions = Object.entries(paths ?? {}).filter(
      ([, { get }]) => get !== undefined && 'x-extension' in get,
    );
    expect(extensions.map(([path]) => path)).toEqual([
      '/v1/providers',
      '/v1/machines/{id}/prices',
      '/v1/machines/search',
      '/v1/machines/first-available',
      '/v1/machines/recommend',
    ]);
  });

  it('has no unresolved reference', async () => {
    const document = await read();
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(
      ([, reference = '']) => reference,
    );
    expect(references.length).toBeGreaterThan(20);
    for (const reference of references) expect(resolve(document, reference)).toBeDefined();
  });

  it('describes its examples and the real answers', async () => {
    await using api = await testApi();
    const document = await read();
    const urls: Readonly<Record<string, string>> = {
      '/v1/providers': '/v1/providers',
      '/v1/machines': '/v1/machines?provider=5&region=4',
      '/v1/machines/{id}': '/v1/machines/300',
      '/v1/machines/{id}/prices': '/v1/machines/300/prices',
      '/v1/machines/search': '/v1/machines/search?min_cpu=2&limit=3',
      '/v1/machines/first-available': '/v1/machines/first-available?ids=999,300',
      '/v1/machines/recommend': '/v1/machines/recommend?cpu=2&ram=4',
      '/v1/clusters': '/v1/clusters',
      '/v1/clusters/{slug}': '/v1/clusters/cluster-test',
      '/healthz': '/healthz',
      '/readyz': '/readyz',
    };
    for (const [path, url] of Object.entries(urls)) {
      const content = document.paths?.[path]?.get?.responses?.['200']?.content?.['application/json'];
      const schema = validator(document, content?.schema);
      const { body } = await api.app.inject({ url, headers: { authorization: `Bearer ${api.token}` } });
      expect(schema.safeParse(content?.example).error, `the example of ${path}`).toBeUndefined();
      expect(schema.safeParse(JSON.parse(body)).error, `the answer of ${path}`).toBeUndefined();
      expect(schema.safeParse({ wrong: true }).success).toBe(false);
    }
  });

  it('has only examples that match their schemas, and one for each error', async () => {
    const document = await read();
    let checked = 0;
    const check = (at: string, schema: unknown, example: unknown) => {
      checked += 1;
      expect(validator(document, schema).safeParse(example).error, at).toBeUndefined();
    };
    interface Shown {
      readonly schema?: unknown;
      readonly example?: unknown;
      readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
    }
    const walk = (at: string, node: unknown) => {
      if (typeof node !== 'object' || node === null) return;
      const { schema, example, examples = {} } = node as Shown;
      if (schema !== undefined) {
        if (example !== undefined) check(at, schema, example);
        for (const [name, { value }] of Object.entries(examples)) check(`${at} ${name}`, schema, value);
      }
      for (const [key, child] of Object.entries(node)) walk(`${at}/${key}`, child);
    };
    walk('', document);
    expect(checked).toBeGreaterThan(30);
    for (const [status, { content }] of Object.entries(document.components?.responses ?? {})) {
      const examples = Object.values(content?.['application/problem+json']?.examples ?? {});
      if (status === '304') continue;
      expect(examples.length, status).toBeGreaterThan(0);
      if (status !== 'default')
        for (const { value } of examples) expect(value).toMatchObject({ status: Number(status) });
    }
  });

  it('describes the answers to other methods and to too many requests', async () => {
    await using api = await testApi({ limits: { requestsPerMinute: 1 } });
    const document = await read();
    const bearer = { authorization: `Bearer ${api.token}` };
    const first = await api.app.inject({ method: 'POST', url: '/v1/clusters', headers: bearer });
    const second = await api.app.inject({ url: '/v1/clusters', headers: bearer });
    for (const response of [first, second]) {
      const status = String(response.statusCode);
      const described = document.components?.responses?.[status] ?? expect.unreachable(status);
      const { headers, content } = described;
      for (const name of Object.keys(headers ?? {}))
        expect(response.headers, `${status} ${name}`).toHaveProperty([name.toLowerCase()]);
      const schema = validator(document, content?.['application/problem+json']?.schema);
      expect(schema.safeParse(response.json()).error).toBeUndefined();
      for (const [path, { get }] of Object.entries(document.paths ?? {}))
        if (path.startsWith('/v1/')) expect(Object.keys(get?.responses ?? {}), path).toContain(status);
    }
    expect([first.statusCode, second.statusCode]).toEqual([405, 429]);
  });

  it('describes a 503 of /readyz, and the unit of prices', async () => {
    const document = await read();
    const { responses } = document.paths?.['/readyz']?.get ?? expect.unreachable('no /readyz');
    expect(Object.values(responses?.['503']?.content ?? {})[0]?.examples).toMatchObject({
      notReady: { value: { status: 503, checks: { cache: 'ok' } } },
    });
    const header = 'Fleetbook-Currency';
    expect(Object.keys(document.components?.headers ?? {})).toContain(header);
    const priced = ['Machine', 'Price'].map(
      (name) => document.components?.schemas?.[name]?.properties?.price,
    );
    for (const price of priced) expect(price?.description).toContain(header);
  });

  it('describes each problem', async () => {
    await using api = await testApi();
    const document = await read();
    const schema = validator(document, document.components?.schemas?.Problem);
    const bearer = { authorization: `Bearer ${api.token}` };
    for (const request of [
      { url: '/v1/clusters' },
      { url: '/v1/clusters/x', headers: bearer },
      { url: '/v1/machines', headers: bearer },
      { url: '/v1/clusters', headers: { ...bearer, accept: 'text/html' } },
    ]) {
      const response = await api.app.inject(request);
      expect(schema.safeParse(response.json()).error).toBeUndefined();
    }
  });

  it('may be cached, but must be revalidated, in any coding', async () => {
    await using api = await testApi();
    const first = await api.app.inject({ url: '/openapi.json', headers: { 'accept-encoding': 'br' } });
    expect(first.headers).toMatchObject({
      'cache-control': 'no-cache',
      vary: 'Accept-Encoding',
      'content-encoding': 'br',
    });
    const again = await api.app.inject({
      url: '/openapi.json',
      headers: { 'if-none-match': String(first.headers.etag) },
    });
    expect(again.statusCode).toBe(304);
  });
});
