/** Access control over real sockets, with tokens and documents from PostgreSQL and Redis. */
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deleteOrganization } from '../../src/db/organizations.ts';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { SCOPES, type Scope } from '../../src/domain/scope.ts';
import { newToken } from '../../src/domain/token.ts';
import { buildApp } from '../../src/http/app.ts';
import { addOrganization, addSample, type Sample } from '../snapshot/rows.ts';
import { openScene, type Scene } from '../snapshot/scene.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

const ROUTES = [
  '/v1/providers',
  '/v1/machines?provider=1&region=1',
  '/v1/machines/1',
  '/v1/machines/1/prices',
  '/v1/clusters',
  '/v1/clusters/cluster-test',
] as const;
type Route = (typeof ROUTES)[number];
const scopeOf = (route: Route): Scope => (route.includes('cluster') ? 'clusters:read' : 'machines:read');

const NO_CREDENTIALS = 'Bearer realm="fleetbook"';
const INVALID = 'Bearer realm="fleetbook", error="invalid_token"';

/** Authorization fields, and the challenge of their 401. */
const REFUSED = {
  'no token': NO_CREDENTIALS,
  'another scheme': NO_CREDENTIALS,
  'a malformed token': INVALID,
  'a wrong checksum': INVALID,
  'an unknown token': INVALID,
  'an expired token': INVALID,
  'a revoked token': INVALID,
  'a token of a deleted organization': INVALID,
} as const;
type Refused = keyof typeof REFUSED;

const closing = new AsyncDisposableStack();
let scene: Scene;
let sample: Sample;
/** A reader with all publications, and a reader with only PostgreSQL. */
let ports: Readonly<Record<'linked' | 'without a cache', number>>;
const tokens = new Map<string, string>();

const create = async (organizationId: number, scopes: readonly Scope[], expiresAt?: Date) =>
  createToken(scene.store.db, { organizationId, scopes, expiresAt });

beforeAll(async () => {
  const redis = closing.use(await startTestRedis());
  scene = closing.use(await openScene(redis));
  sample = await addSample(scene.sql);
  const right = await create(sample.a, SCOPES);
  const expired = await create(sample.a, SCOPES, new Date(Date.now() - 1000));
  const revoked = await create(sample.a, SCOPES);
  await revokeToken(scene.store.db, revoked.id);
  const orphan = await create(await addOrganization(scene.sql, 'gone'), SCOPES);
  await deleteOrganization(scene.store.db, 'gone');
  const last = right.token.endsWith('0') ? '1' : '0';
  const sent: Record<Refused | 'right' | 'other', string> = {
    'no token': '',
    'another scheme': 'Basic Zm9vOmJhcg==',
    'a malformed token': 'Bearer nonsense',
    'a wrong checksum': `Bearer ${right.token.slice(0, -1)}${last}`,
    'an unknown token': `Bearer ${newToken()}`,
    'an expired token': `Bearer ${expired.token}`,
    'a revoked token': `Bearer ${revoked.token}`,
    'a token of a deleted organization': `Bearer ${orphan.token}`,
    right: `Bearer ${right.token}`,
    other: `Bearer ${(await create(sample.b, SCOPES)).token}`,
  };
  for (const [what, authorization] of Object.entries(sent)) tokens.set(what, authorization);
  for (const scope of SCOPES) {
    tokens.set(scope, `Bearer ${(await create(sample.a, [scope])).token}`);
  }
  await scene.publisher.publishDirty();

  const serve = async (reader: ReturnType<Scene['reader']>) => {
    const readiness = async () => ({ ready: true, checks: {} });
    const app = buildApp({ ...reader, readiness, logger: false, version: '1.2.3' });
    closing.defer(() => app.close());
    await app.listen({ host: '127.0.0.1', port: 0 });
    return (app.server.address() as AddressInfo).port;
  };
  const linked = scene.reader();
  await linked.catalogue.providers();
  await until(() => linked.link.linked);
  ports = {
    linked: await serve(linked),
    'without a cache': await serve(scene.reader({ redisUrl: 'redis://127.0.0.1:1' })),
  };
});
afterAll(() => closing.disposeAsync());

async function send(server: keyof typeof ports, route: string, who: string, method = 'GET') {
  const authorization = tokens.get(who) ?? expect.unreachable(who);
  const response = await fetch(`http://127.0.0.1:${ports[server]}${route}`, {
    method,
    headers: authorization === '' ? {} : { authorization },
  });
  return { status: response.status, headers: response.headers, body: await response.text() };
}

describe.each(['linked', 'without a cache'] as const)('a reader that is %s', (server) => {
  describe.each(ROUTES)('%s', (route) => {
    // Twice each: the second answer comes from memory through another path.
    it.each(Object.keys(REFUSED) as Refused[])('answers 401 to %s, for GET and HEAD', async (who) => {
      for (const method of ['GET', 'HEAD', 'GET']) {
        const { status, headers, body } = await send(server, route, who, method);
        expect(status).toBe(401);
        expect(headers.get('www-authenticate')).toBe(REFUSED[who]);
        expect(headers.get('content-type')).toBe('application/problem+json');
        expect(headers.get('cache-control')).toBe('no-store');
        expect(headers.get('etag')).toBeNull();
        expect(headers.get('fleetbook-tier')).toBeNull();
        if (method === 'HEAD') expect(body).toBe('');
        else expect(JSON.parse(body)).toMatchObject({ status: 401, instance: headers.get('x-request-id') });
      }
    });

    it('answers 403 to a token that lacks the scope, and names the scope', async () => {
      const scope = scopeOf(route);
      const lacking = SCOPES.find((each) => each !== scope) ?? expect.unreachable();
      for (const method of ['GET', 'HEAD', 'GET']) {
        const { status, headers, body } = await send(server, route, lacking, method);
        expect(status).toBe(403);
        expect(headers.get('www-authenticate')).toBe(
          `Bearer realm="fleetbook", error="insufficient_scope", scope="${scope}"`,
        );
        expect(body === '' ? { scope } : JSON.parse(body)).toMatchObject({ scope });
      }
    });

    it('gives the same 200 to the full token and to one with only its scope', async () => {
      const full = await send(server, route, 'right');
      expect(full.status).toBe(200);
      for (const who of ['right', scopeOf(route)]) {
        for (const method of ['GET', 'HEAD', 'GET']) {
          const answer = await send(server, route, who, method);
          expect(answer.status).toBe(200);
          expect(answer.headers.get('etag')).toBe(full.headers.get('etag'));
          expect(answer.headers.get('content-length')).toBe(full.headers.get('content-length'));
          expect(answer.body).toBe(method === 'HEAD' ? '' : full.body);
        }
      }
    });

    it('shows another organization the same catalogue, but only its own clusters', async () => {
      const [mine, theirs] = [await send(server, route, 'right'), await send(server, route, 'other')];
      expect(theirs.status).toBe(200);
      if (scopeOf(route) === 'machines:read') {
        expect(theirs.body).toBe(mine.body);
        return;
      }
      expect(mine.body).toContain('Ä’s');
      expect(mine.body).not.toContain('of B alone');
      expect(theirs.body).toContain('of B alone');
      expect(theirs.body).not.toContain('Ä’s');
      expect(theirs.headers.get('etag')).not.toBe(mine.headers.get('etag'));
    });
  });

  it('rejects all invalid tokens with the same text', async () => {
    const bodies = new Set<string>();
    for (const [who, challenge] of Object.entries(REFUSED)) {
      if (challenge !== INVALID) continue;
      const { instance, ...problem } = JSON.parse((await send(server, '/v1/clusters', who)).body);
      expect(instance).toEqual(expect.any(String));
      bodies.add(JSON.stringify(problem));
    }
    expect(bodies.size).toBe(1);
  });

  it('answers the same 404 to a slug of another organization and to an unknown slug', async () => {
    await scene.sql`update clusters set slug = 'only-b' where id = ${sample.clusterOfB}`;
    await scene.sql`update organizations set clusters_version = clusters_version + 1 where id = ${sample.b}`;
    await scene.publisher.publishDirty();
    await until(async () => (await send(server, '/v1/clusters/only-b', 'other')).status === 200);
    const answers = [];
    for (const slug of ['only-b', 'unknown']) {
      const { status, headers, body } = await send(server, `/v1/clusters/${slug}`, 'right');
      expect(status).toBe(404);
      const { instance, ...problem } = JSON.parse(body);
      const { date, 'x-request-id': id, ...rest } = Object.fromEntries(headers);
      expect({ instance, date }).toEqual({ instance: id, date: expect.any(String) });
      answers.push({ problem, rest });
    }
    expect(answers[0]).toEqual(answers[1]);
    await scene.sql`update clusters set slug = 'cluster-test' where id = ${sample.clusterOfB}`;
    await scene.sql`update organizations set clusters_version = clusters_version + 1 where id = ${sample.b}`;
    await scene.publisher.publishDirty();
  });
});
