import { METHODS } from 'node:http';
import { afterAll, describe, expect, it } from 'vitest';
import { SCOPES, type Scope } from '../../src/domain/scope.ts';
import { newToken } from '../../src/domain/token.ts';
import { testApi } from './harness.ts';

const api = await testApi();
afterAll(() => api[Symbol.asyncDispose]());

const ROUTES: readonly (readonly [url: string, scope: Scope])[] = [
  ['/v1/providers', 'machines:read'],
  ['/v1/machines?provider=5&region=3', 'machines:read'],
  ['/v1/machines/300', 'machines:read'],
  ['/v1/machines/300/prices', 'machines:read'],
  ['/v1/clusters', 'clusters:read'],
  ['/v1/clusters/cluster-test', 'clusters:read'],
];
const good = api.token;
const lastChanged = good.endsWith('0') ? '1' : '0';

const REFUSED: readonly (readonly [what: string, authorization: string | undefined, challenge: string])[] = [
  ['no credentials', undefined, 'Bearer realm="fleetbook"'],
  ['another scheme', 'Basic Zm9vOmJhcg==', 'Bearer realm="fleetbook"'],
  ['a scheme that only begins like ours', `Bearerx ${good}`, 'Bearer realm="fleetbook"'],
  ['an empty token', 'Bearer', 'Bearer realm="fleetbook", error="invalid_token"'],
  ['a malformed token', 'Bearer nonsense', 'Bearer realm="fleetbook", error="invalid_token"'],
  ['two tokens', `Bearer ${good}, Bearer ${good}`, 'Bearer realm="fleetbook", error="invalid_token"'],
  [
    'a bad checksum',
    `Bearer ${good.slice(0, -1)}${lastChanged}`,
    'Bearer realm="fleetbook", error="invalid_token"',
  ],
  ['an unknown token', `Bearer ${newToken()}`, 'Bearer realm="fleetbook", error="invalid_token"'],
  [
    'an expired token',
    `Bearer ${api.tokens.issue({ state: 'expired' })}`,
    'Bearer realm="fleetbook", error="invalid_token"',
  ],
  [
    'a revoked token',
    `Bearer ${api.tokens.issue({ state: 'revoked' })}`,
    'Bearer realm="fleetbook", error="invalid_token"',
  ],
];

describe.each(ROUTES)('GET %s', (url, scope) => {
  it.each(REFUSED)('answers 401 to %s', async (_, authorization, challenge) => {
    const response = await api.app.inject({ url, headers: { ...(authorization && { authorization }) } });
    expect(response.statusCode).toBe(401);
    expect(response.headers['www-authenticate']).toBe(challenge);
    expect(response.headers['content-type']).toBe('application/problem+json');
    expect(response.headers['cache-control']).toBe('no-store');
    expect(response.json()).toMatchObject({ status: 401, instance: response.headers['x-request-id'] });
  });

  it('answers 403 with the scope that the token lacks', async () => {
    const token = api.tokens.issue({ scopes: SCOPES.filter((each) => each !== scope) });
    const response = await api.app.inject({ url, headers: { authorization: `Bearer ${token}` } });
    expect(response.statusCode).toBe(403);
    expect(response.headers['www-authenticate']).toBe(
      `Bearer realm="fleetbook", error="insufficient_scope", scope="${scope}"`,
    );
    expect(response.json()).toMatchObject({ type: 'urn:fleetbook:problem:insufficient-scope', scope });
  });

  it.each([
    ['Bearer', good],
    ['bearer', good],
    ['BEARER ', good],
  ])('answers 200 to the scheme written %j and a token with only its scope', async (scheme) => {
    const token = api.tokens.issue({ scopes: [scope] });
    const response = await api.app.inject({ url, headers: { authorization: `${scheme} ${token}` } });
    expect(response.statusCode).toBe(200);
  });

  it.each(METHODS.filter((method) => !['GET', 'HEAD', 'CONNECT'].includes(method)))(
    'answers %s with 401 before 405',
    async (method) => {
      // The type of inject() knows only the usual methods.
      const send = (authorization: string | undefined) =>
        api.app.inject({
          method: method as 'POST',
          url,
          headers: { ...(authorization && { authorization }) },
        });
      expect((await send(undefined)).statusCode).toBe(401);
      const response = await send(`Bearer ${good}`);
      expect(response.statusCode).toBe(405);
      expect(response.headers.allow).toBe('GET, HEAD');
    },
  );
});

describe('a rejected token', () => {
  it('gets the same answer for any reason', async () => {
    const bodies = new Set<string>();
    for (const [, authorization, challenge] of REFUSED.filter(([, , expected]) =>
      expected.includes('error'),
    )) {
      const headers = { authorization: authorization ?? '', 'x-request-id': 'same' };
      const response = await api.app.inject({ url: '/v1/clusters', headers });
      bodies.add(`${challenge}\n${response.body}`);
    }
    expect(bodies.size).toBe(1);
  });

  it.each([
    ['an unknown path', { url: '/v1/nothing' }],
    ['an unknown method', { method: 'DELETE', url: '/v1/clusters' }],
    ['an unknown cluster', { url: '/v1/clusters/none' }],
    ['an invalid parameter', { url: '/v1/machines?provider=x' }],
    ['an unacceptable representation', { url: '/v1/clusters', headers: { accept: 'text/html' } }],
    ['a condition that is true', { url: '/v1/clusters', headers: { 'if-none-match': '*' } }],
    [
      'a body that is not JSON',
      { method: 'POST', url: '/v1/clusters', headers: { 'content-type': 'application/json' }, payload: '{' },
    ],
    [
      'a malformed content type',
      { method: 'POST', url: '/v1/clusters', headers: { 'content-type': '????' }, payload: 'x' },
    ],
  ] as const)('is checked before %s', async (_, request) => {
    const response = await api.app.inject(request);
    expect(response.statusCode).toBe(401);
  });
});

describe('an unknown path', () => {
  it.each([
    '/',
    '/v1',
    '/v1/',
    '/v2/machines',
    '/v1/machines/300/more',
    '/v1/clusters/a/b',
    '/v1//clusters',
    '/favicon.ico',
  ])('%s is 404 with any valid token', async (url) => {
    const token = api.tokens.issue({ scopes: [] });
    const response = await api.app.inject({ url, headers: { authorization: `Bearer ${token}` } });
    expect(response.statusCode).toBe(404);
    expect(response.json().title).toBe('Not Found');
  });
});

describe.each(['/healthz', '/readyz', '/openapi.json'])('%s', (url) => {
  it('requires no token', async () => {
    const response = await api.app.inject({ url });
    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toBe('application/json');
    expect(response.headers.vary ?? '').not.toContain('Authorization');
  });

  it('answers other methods with 405, without a token too', async () => {
    const response = await api.app.inject({ method: 'POST', url, payload: 'x' });
    expect(response.statusCode).toBe(405);
    expect(response.headers.allow).toBe('GET, HEAD');
  });
});
