/** The hot path and the ordinary path must give equal answers in these cases. */

import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { SCOPES, type Scope } from '../../src/domain/scope.ts';
import { newToken } from '../../src/domain/token.ts';
import type { TestScene } from '../snapshot/scene.ts';
import { converse, header, type WireRequest } from './wire.ts';

/** Request headers: each coding with each condition. */
function variants(tag: string): string[][] {
  const hash = tag.slice(1, -1);
  const codings = [
    undefined,
    'gzip',
    'br',
    'gzip, deflate, br',
    'br;q=0.5, gzip',
    'identity, gzip;q=0.1',
    '*',
    'gzip, identity;q=0',
    'identity;q=0',
    'zstd',
    '',
  ];
  const conditions = [
    undefined,
    '*',
    '"other"',
    `"${hash}"`,
    `"${hash}-gzip"`,
    `"${hash}-br"`,
    `W/"${hash}"`,
    `"other", "${hash}-gzip"`,
    '"unclosed',
  ];
  return codings.flatMap((coding) =>
    conditions.map((condition) => [
      ...(coding === undefined ? [] : [`Accept-Encoding: ${coding}`]),
      ...(condition === undefined ? [] : [`If-None-Match: ${condition}`]),
    ]),
  );
}

/** Each case of the contract's tables, as requests on one connection. */
export async function requestsOf(
  port: number,
  scene: TestScene,
): Promise<{ inARow: WireRequest[]; alone: WireRequest[] }> {
  const { sample } = scene;
  const token = (scopes: readonly Scope[] = SCOPES, organizationId = sample.a) =>
    createToken(scene.store.db, { organizationId, scopes });
  const good = await token();
  const authorize = (text: string) => `Authorization: Bearer ${text}`;
  const same = ['X-Request-Id: the-same'];
  const list = `/v1/machines?provider=${sample.provider}&region=${sample.region}`;
  const there = [
    list,
    `/v1/machines?region=${sample.region}&provider=${sample.provider}&x=1`,
    `/v1/machines?provider=${sample.provider}&region=${sample.emptyRegion}`,
    `/v1/machines/${sample.small}`,
    '/v1/providers',
    '/v1/clusters',
    '/v1/clusters/cluster-test',
  ];
  const requests: WireRequest[] = [];
  for (const target of there) {
    const [answer] = await converse(port, [{ method: 'GET', target, headers: [authorize(good.token)] }]);
    for (const headers of variants(header(answer, 'etag') ?? ''))
      for (const method of ['GET', 'HEAD'])
        requests.push({ method, target, headers: [...same, authorize(good.token), ...headers] });
  }
  const ids = ['0', '-1', '+1', '01', '1.0', '1e1', '0x10', '%205', '', 'one', '2147483648', '2147483647'];
  const elsewhere = [
    ...ids.map((id) => `/v1/machines?provider=${id}&region=${sample.region}`),
    ...ids.map((id) => `/v1/machines?provider=${sample.provider}&region=${id}`),
    ...ids.map((id) => `/v1/machines/${id}`),
    '/v1/machines',
    `/v1/machines?provider=${sample.provider}`,
    `${list}&region=${sample.region}`,
    `/v1/machines?provider=%3${sample.provider}&region=${sample.region}`,
    `/v1/machines/${sample.gpu}`,
    `/v1/machines/${sample.small}/prices`,
    `/v1/machines/${sample.small}/`,
    `/v1/machines/first-available?ids=${sample.small}`,
    `/v1/machines/first-available?ids=${sample.gpu},${sample.small}`,
    '/v1/machines/first-available?ids=one',
    '/v1/machines/first-available',
    '/v1/clusters/',
    '/v1/clusters/none',
    '/v1/clusters/__proto__',
    '/v1/clusters/%ff%fe',
    '/v1/clusters/cluster%2Dtest',
    '/v1/clusters/cluster-test?x=1#y',
    'http://a/v1/clusters',
    '/v1/nothing',
    '/healthz',
    '/openapi.json',
  ];
  const refused = (await token(['clusters:read'])).token;
  const revoked = await token();
  await revokeToken(scene.store.db, revoked.id);
  const credentials = [
    [],
    ['Authorization: Basic abc'],
    ['Authorization: Bearer'],
    [authorize('fb_malformed')],
    [authorize(newToken())],
    [authorize(revoked.token)],
    [authorize(refused)],
    [authorize((await token(['machines:read'])).token)],
    [authorize((await token(undefined, sample.b)).token)],
    [authorize(good.token), 'Authorization: Bearer x'],
    [`authorization:   bearer   ${good.token}  `],
  ];
  const odd = [
    ['Accept: text/html'],
    ['Accept: */*;q=0'],
    ['Accept: application/json;q=0.1, text/html'],
    ['Accept-Encoding: gzip', 'Accept-Encoding: br'],
    ['X-Request-Id: not well formed'],
    ['Upgrade: websocket', 'Connection: Upgrade'],
    ['Range: bytes=0-1'],
  ];
  for (const target of [...there, ...elsewhere])
    for (const method of ['GET', 'HEAD', 'POST', 'DELETE'])
      requests.push({ method, target, headers: [...same, authorize(good.token)] });
  for (const target of [...there, '/v1/clusters/none', '/v1/machines/x'])
    for (const headers of credentials)
      requests.push({ method: 'GET', target, headers: [...same, ...headers] });
  for (const target of there)
    for (const headers of odd.slice(0, 5))
      requests.push({ method: 'GET', target, headers: [...same, authorize(good.token), ...headers] });
  // These end their connection, or the following bytes are another request.
  const alone: WireRequest[] = [];
  for (const target of there) {
    const headers = [...same, authorize(good.token)];
    alone.push({ method: 'GET', target, headers, version: '1.0' });
    alone.push({ method: 'GET', target, headers: [...headers, 'Connection: keep-alive'], version: '1.0' });
    alone.push({ method: 'GET', target, headers: [...headers, 'Connection: close'] });
    for (const more of odd.slice(5)) alone.push({ method: 'GET', target, headers: [...headers, ...more] });
    alone.push({ method: 'GET', target, headers: [...headers, 'Content-Length: 2'], body: 'xx' });
  }
  return { inARow: requests, alone };
}
