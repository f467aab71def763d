import { once } from 'node:events';
import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { BadSetting, readSettings } from '../../src/config/settings.ts';
import { createToken } from '../../src/db/tokens.ts';
import type { ApiDeps } from '../../src/http/app.ts';
import { INTERNAL_ERROR } from '../../src/http/protocol/problem.ts';
import { Unavailable } from '../../src/snapshot/document/answer.ts';
import { sceneForEachTest } from '../snapshot/scene.ts';
import { until } from '../support/until.ts';
import { listen, testApi } from './harness.ts';

const PAGE = 'https://app.example.com';
const STRANGER = 'https://evil.example.com';
const PREFLIGHT = {
  'access-control-request-method': 'GET',
  'access-control-request-headers': 'authorization',
};

interface ReceivedAnswer {
  readonly status: number;
  /** Joins lines of one name, as a client does. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
}

/** Uses a real connection: browsers and `fetch` do not let scripts set `Origin`. */
async function send(
  port: number,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  method = 'GET',
): Promise<ReceivedAnswer> {
  const sent = request({ port, host: '127.0.0.1', path, method, headers }).end();
  const [response] = await once(sent, 'response');
  let text = '';
  for await (const chunk of response) text += chunk;
  return { status: response.statusCode, headers: response.headers, text };
}

async function serve(overrides: Partial<ApiDeps>) {
  const api = await testApi(overrides);
  return { ...api, port: await listen(api.app) };
}

const corsFields = ({ headers }: ReceivedAnswer) =>
  Object.keys(headers).filter((name) => name.startsWith('access-control-'));

describe('without CORS_ORIGINS', () => {
  it('pages of other origins get no CORS fields, and OPTIONS is answered like any other method', async () => {
    await using api = await serve({});
    const authorization = `Bearer ${api.token}`;
    const answers = [
      await send(api.port, '/v1/clusters', { authorization, origin: PAGE }),
      await send(api.port, '/v1/clusters', { authorization, origin: PAGE, ...PREFLIGHT }, 'OPTIONS'),
      await send(api.port, '/v1/clusters', { origin: PAGE, ...PREFLIGHT }, 'OPTIONS'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 405, 401]);
    expect(answers.flatMap(corsFields)).toEqual([]);
    expect(answers[0]?.headers.vary).toBe('Authorization, Accept-Encoding');
  });

  it('a request has one listener, as with them', async () => {
    await using off = await testApi();
    await using on = await testApi({ corsOrigins: '*' });
    for (const { app } of [off, on]) expect(app.server.listeners('request')).toHaveLength(1);
  });
});

describe('a preflight', () => {
  it.each(['/v1/clusters', '/v1/machines/1', '/v1/nothing', '/openapi.json'])(
    'is answered without a token, and equally for each path: %s',
    async (path) => {
      await using api = await serve({ corsOrigins: [PAGE] });
      const answer = await send(
        api.port,
        path,
        { origin: PAGE, 'x-request-id': 'mine', ...PREFLIGHT },
        'OPTIONS',
      );
      const { date: _, connection: __, 'keep-alive': ___, ...headers } = answer.headers;
      expect({ ...answer, headers }).toEqual({
        status: 204,
        text: '',
        headers: {
          'x-request-id': 'mine',
          'access-control-allow-origin': PAGE,
          vary: 'Origin',
          'access-control-allow-methods': 'GET, HEAD',
          'access-control-allow-headers':
            'Authorization, If-None-Match, If-Range, Range, Last-Event-ID, Cache-Control, X-Request-Id, Traceparent, Tracestate',
          'access-control-max-age': '7200',
        },
      });
      await until(() => api.observed.length === 1);
      expect(api.observed[0]).toMatchObject({ route: '(none)', method: 'OPTIONS', status: 204 });
    },
  );

  it('of an unlisted origin is answered as without the setting', async () => {
    await using api = await serve({ corsOrigins: [PAGE] });
    const answer = await send(api.port, '/v1/clusters', { origin: STRANGER, ...PREFLIGHT }, 'OPTIONS');
    expect(answer.status).toBe(401);
    expect(corsFields(answer)).toEqual([]);
    expect(answer.headers.vary).toBe('Origin');
  });

  it('has an origin and a requested method: any other OPTIONS is a 405 that the page may read', async () => {
    await using api = await serve({ corsOrigins: [PAGE] });
    const headers = { authorization: `Bearer ${api.token}`, origin: PAGE };
    const answer = await send(api.port, '/v1/clusters', headers, 'OPTIONS');
    expect(answer.status).toBe(405);
    expect(answer.headers).toMatchObject({ allow: 'GET, HEAD', 'access-control-allow-origin': PAGE });
  });
});

describe('answers to a page of a listed origin', () => {
  it('can be read with any status', async () => {
    let failure: Error | undefined;
    await using api = await serve({
      corsOrigins: [PAGE],
      readiness: async () => {
        throw failure;
      },
      clusters: {
        clusters: async () => Promise.reject(failure),
        cluster: async () => undefined,
      },
    });
    const authorization = `Bearer ${api.token}`;
    const get = (path: string, headers: Record<string, string> = { authorization }) =>
      send(api.port, path, { origin: PAGE, ...headers });
    failure = new Unavailable('down', 3);
    const machine = await get('/v1/machines/300');
    const answers: [number, ReceivedAnswer][] = [
      [200, machine],
      [304, await get('/v1/machines/300', { authorization, 'if-none-match': machine.headers.etag ?? '' })],
      [400, await get('/v1/machines')],
      [400, await get('/%')],
      [401, await get('/v1/machines/300', {})],
      [404, await get('/v1/clusters/none')],
      [404, await get('/nothing')],
      [406, await get('/v1/machines/300', { authorization, accept: 'text/html' })],
      [503, await get('/v1/clusters')],
      [503, await get('/readyz')],
      [200, await get('/healthz')],
      [200, await get('/openapi.json')],
    ];
    failure = new Error('unexpected');
    answers.push([INTERNAL_ERROR.status, await get('/v1/clusters')]);
    for (const [status, { status: found, headers }] of answers) {
      expect(found).toBe(status);
      expect(headers['access-control-allow-origin']).toBe(PAGE);
      expect(headers['access-control-expose-headers']).toContain('ETag, Fleetbook-As-Of');
      expect(headers.vary?.split(', ')).toContain('Origin');
    }
    expect(machine.headers.vary).toBe('Authorization, Accept-Encoding, Origin');
    expect(answers.at(-2)?.[1].headers.vary).toBe('Accept-Encoding, Origin');
  });

  it('keep the fields of a rate limit', async () => {
    await using api = await serve({ corsOrigins: [PAGE], limits: { requestsPerMinute: 1 } });
    const headers = { authorization: `Bearer ${api.token}`, origin: PAGE };
    const answers = [
      await send(api.port, '/v1/machines/300', headers),
      await send(api.port, '/v1/machines/300', headers),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 429]);
    for (const answer of answers)
      expect(answer.headers).toMatchObject({
        'access-control-allow-origin': PAGE,
        'ratelimit-limit': '1',
        vary: expect.stringContaining('Origin'),
      });
    expect(answers[1]?.headers['access-control-expose-headers']).toMatch(/Retry-After.*RateLimit-Reset/);
  });

  it('cannot be read by other origins, and `Vary` informs caches', async () => {
    await using api = await serve({ corsOrigins: [PAGE, 'http://localhost:5173'] });
    const authorization = `Bearer ${api.token}`;
    for (const origin of [STRANGER, 'null', `${PAGE}.evil.example.com`, '', undefined]) {
      const answer = await send(api.port, '/v1/machines/300', {
        authorization,
        ...(origin !== undefined && { origin }),
      });
      expect(answer.status).toBe(200);
      expect(corsFields(answer)).toEqual([]);
      expect(answer.headers.vary).toBe('Authorization, Accept-Encoding, Origin');
    }
    const local = await send(api.port, '/v1/machines/300', {
      authorization,
      origin: 'http://localhost:5173',
    });
    expect(local.headers['access-control-allow-origin']).toBe('http://localhost:5173');
  });

  it('are equal for each origin if all are permitted', async () => {
    await using api = await serve({ corsOrigins: '*' });
    const authorization = `Bearer ${api.token}`;
    for (const origin of [PAGE, 'null', undefined]) {
      const answer = await send(api.port, '/v1/machines/300', {
        authorization,
        ...(origin !== undefined && { origin }),
      });
      expect(answer.headers['access-control-allow-origin']).toBe('*');
      expect(answer.headers.vary).toBe('Authorization, Accept-Encoding');
    }
  });
});

describe('the hot path', () => {
  const scene = sceneForEachTest();

  it('answers pages of listed origins, with the readable headers', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    await using api = await serve({ ...reader, corsOrigins: [PAGE] });
    const { token } = await createToken(scene.store.db, {
      organizationId: scene.sample.a,
      scopes: ['machines:read', 'clusters:read'],
    });
    const get = (origin: string) =>
      send(api.port, '/v1/clusters', { authorization: `Bearer ${token}`, origin });
    await until(async () => {
      await get(PAGE);
      return reader.responses.hits > 0;
    });
    const before = reader.responses.hits;
    const [ours, theirs, again] = [await get(PAGE), await get(STRANGER), await get(PAGE)];
    expect(reader.responses.hits).toBe(before + 3);
    expect(ours.headers['access-control-allow-origin']).toBe(PAGE);
    expect(corsFields(theirs)).toEqual([]);
    const without = ({
      headers: { date: _, 'x-request-id': __, ...headers },
      ...answer
    }: ReceivedAnswer) => ({
      ...answer,
      headers,
    });
    expect(without(again)).toEqual(without(ours));
    for (const { headers } of [ours, theirs])
      expect(headers.vary).toBe('Authorization, Accept-Encoding, Origin');
  });
});

describe('CORS_ORIGINS', () => {
  it.each([
    ['*', '*'],
    ['https://app.example.com', ['https://app.example.com']],
    [
      'https://APP.example.com:443/, http://localhost:5173',
      ['https://app.example.com', 'http://localhost:5173'],
    ],
  ])('reads %s', (given, read) => {
    expect(readSettings({ CORS_ORIGINS: given }).CORS_ORIGINS).toEqual(read);
  });

  it.each([
    'app.example.com',
    'https://app.example.com/page',
    '*,https://a.example',
    'https://*.example.com',
    ',',
  ])('rejects %s', (given) => {
    expect(() => readSettings({ CORS_ORIGINS: given })).toThrow(BadSetting);
    expect(() => readSettings({ CORS_ORIGINS: given })).toThrow(/^CORS_ORIGINS must be \*, or a list/);
  });
});
