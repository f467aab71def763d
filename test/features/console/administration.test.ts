/** Organizations, people and tokens in the console: answers, roles, and rows of the audit log. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tokenWorks } from '../../../src/db/tokens.ts';
import { isWellFormedToken } from '../../../src/domain/token.ts';
import { type AuditRecord, auditRecords } from '../../../src/features/console/queries/audit.ts';
import type {
  FoundOrganization,
  FoundOrganizations,
  MadeToken,
  TokensAnswer,
  UsersAnswer,
} from '../../../src/features/console/routes/answers.ts';
import { signInByOidc } from '../../../src/features/operators/db/oidc.ts';
import { setOperatorDisabled } from '../../../src/features/operators/db/operators.ts';
import { OPERATOR } from '../../sync/scene.ts';
import { addOperators, Browser } from '../operators/accounts-scene.ts';
import { type ConsoleScene, openConsoleScene } from './scene.ts';

let scene: ConsoleScene;
const browsers = new Map<string, Browser>();
const as = (name: string) => browsers.get(name) ?? expect.unreachable(name);

beforeAll(async () => {
  scene = await openConsoleScene();
  await addOperators(scene.worker, { zoe: 'admin' });
  for (const name of ['vera', 'ada', 'zoe']) {
    browsers.set(name, new Browser(scene.app));
    expect((await as(name).signIn(name)).statusCode).toBe(303);
  }
  await scene.worker.store.sql`
    insert into organizations (slug, name, created_at)
    select 'org-' || lpad(n::text, 2, '0'), (array['North','South','East'])[1 + n % 3] || ' ' || n,
      timestamptz '2026-01-01Z' + n * interval '1 day'
    from generate_series(1, 30) n`;
  await scene.worker.store.sql`
    insert into tokens (organization_id, hash, scopes, created_at, expires_at, revoked_at, last_used_at)
    select o.id, sha256((o.slug || n)::bytea), '{machines:read}', timestamptz '2026-02-01T00:00:30Z',
      case when n = 2 then timestamptz '2026-02-02Z' end, case when n = 3 then timestamptz '2026-02-03Z' end,
      case when n = 1 and o.id % 2 = 0 then timestamptz '2026-02-01T00:00:00Z' + (o.id - 2) * interval '1 hour' end
    from organizations o, generate_series(1, 1 + o.id % 5) n`;
});
afterAll(() => scene[Symbol.asyncDispose]());

const get = async (path: string, name = 'vera') => (await as(name).sendRequest('GET', path)).json();
const post = async (url: string, payload: object, name = 'zoe') => {
  const answer = await as(name).sendRequest('POST', url, { payload });
  return { status: answer.statusCode, body: answer.json() };
};
const found = async (query = '') =>
  (await get(`/api/organizations?limit=1000${query}`)) as FoundOrganizations;
const newest = async (): Promise<AuditRecord> => {
  const { rows } = await auditRecords(scene.worker.store.db, { limit: 1 });
  return rows[0] ?? expect.unreachable('no row');
};

describe('organizations', () => {
  it('are listed with their clusters, valid tokens and last use', async () => {
    const { rows, total } = await found();
    expect([rows.length, total]).toEqual([30, 30]);
    const [first] = await scene.worker.store.sql<{ id: number; good: number; used: string | null }[]>`
      select o.id, count(*) filter (where t.revoked_at is null and t.expires_at is null)::int as good,
        to_char(max(greatest(t.last_used_at, case when t.last_used_at is not null then t.created_at end))
          at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as used
      from organizations o join tokens t on t.organization_id = o.id where o.slug = 'org-02' group by 1`;
    expect(rows[1]).toEqual({
      id: first?.id,
      slug: 'org-02',
      name: 'East 2',
      clusters: 0,
      tokens: first?.good,
      createdAt: '2026-01-03T00:00:00Z',
      deletedAt: null,
      lastUsedAt: first?.used,
    });
    expect(first?.good).toBeGreaterThan(0);
    // It was used in the minute of its creation. The start of the minute is stored.
    expect(first?.used).toBe('2026-02-01T00:00:30Z');
    expect(rows.filter(({ lastUsedAt }) => lastUsedAt !== null)).toHaveLength(15);
  });

  it.each<[sort: string, key: (row: FoundOrganization) => number | string]>([
    ['slug', ({ slug }) => slug],
    ['name', ({ name }) => name.toLowerCase()],
    ['clusters', ({ clusters }) => clusters],
    ['tokens', ({ tokens }) => tokens],
    ['used', ({ lastUsedAt }) => lastUsedAt ?? ''],
    ['created', ({ createdAt }) => createdAt],
  ])('are sorted by %s, both ways and without a gap between pages', async (sort, key) => {
    for (const order of ['asc', 'desc']) {
      const all = await found(`&sort=${sort}&order=${order}`);
      const keys = all.rows.map(key);
      const sorted = keys.toSorted((one, other) => (one < other ? -1 : one > other ? 1 : 0));
      expect(keys).toEqual(order === 'asc' ? sorted : sorted.reverse());
      const paged: FoundOrganization[] = [];
      for (let offset = 0; offset < 30; offset += 7) {
        const page = await get(`/api/organizations?sort=${sort}&order=${order}&limit=7&offset=${offset}`);
        expect(page.total).toBe(30);
        paged.push(...page.rows);
      }
      expect(paged).toEqual(all.rows);
    }
  });

  it('are searched by slug and name', async () => {
    expect((await found('&q=NORTH')).total).toBe(10);
    expect((await found('&q=org-1')).rows.map(({ slug }) => slug)).toEqual(
      Array.from({ length: 10 }, (_, n) => `org-1${n}`),
    );
    expect(await found('&q=unknown')).toEqual({ rows: [], total: 0 });
  });

  it('reject wrong values, with the name of the field', async () => {
    expect(await get('/api/organizations?sort=size')).toMatchObject({ field: 'sort' });
    expect(await get('/api/organizations?deleted=x')).toMatchObject({ field: 'deleted' });
    expect((await as('vera').sendRequest('GET', '/api/organizations/unknown')).statusCode).toBe(404);
    for (const [field, payload] of [
      ['slug', { slug: 'Acme' }],
      ['name', { slug: 'acme', name: 'two\nlines' }],
    ] as const)
      expect(await post('/api/organizations', payload)).toMatchObject({ status: 400, body: { field } });
    expect((await found('&q=acme')).total).toBe(0);
  });

  it('are created and renamed by an admin, with a row of the audit log', async () => {
    const made = await post('/api/organizations', { slug: 'acme', name: ' Acme Ltd ', reason: 'ticket 7' });
    expect(made).toMatchObject({ status: 200, body: { slug: 'acme', name: 'Acme Ltd' } });
    expect(await newest()).toMatchObject({
      by: 'zoe',
      how: 'console',
      address: '127.0.0.1',
      action: 'organization.create',
      subject: { kind: 'organization', id: 'acme' },
      reason: 'ticket 7',
      details: { name: 'Acme Ltd' },
    });
    expect(await post('/api/organizations', { slug: 'acme' })).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining('"acme" is taken') },
    });
    expect(await post('/api/organizations/acme/rename', { name: 'Acme' })).toMatchObject({ status: 200 });
    expect(await newest()).toMatchObject({ action: 'organization.rename', reason: null });
    expect(await post('/api/organizations/acme/rename', { name: ' ' })).toMatchObject({
      status: 400,
      body: { field: 'name' },
    });
    expect(await post('/api/organizations/unknown/rename', { name: 'x' })).toMatchObject({ status: 404 });
    expect(await get('/api/organizations/acme')).toMatchObject({ slug: 'acme', name: 'Acme', tokens: 0 });
  });

  it('are deleted by tombstone after the slug and a reason are typed', async () => {
    await post('/api/organizations', { slug: 'gone' });
    const { body: made } = await post('/api/organizations/gone/tokens', { scopes: ['machines:read'] });
    const url = '/api/organizations/gone/delete';
    expect(await post(url, { slug: 'gone' })).toMatchObject({ status: 400, body: { field: 'reason' } });
    for (const slug of [undefined, 'acme', 'GONE'])
      expect(await post(url, { slug, reason: 'x' })).toMatchObject({ status: 400, body: { field: 'slug' } });
    expect(await post(url, { slug: 'gone', reason: 'left us' })).toMatchObject({
      status: 200,
      body: { slug: 'gone', clusters: 0, tokens: 1, published: true },
    });
    expect(await newest()).toMatchObject({ action: 'organization.delete', reason: 'left us' });
    const { db } = scene.worker.store;
    expect(await tokenWorks(db, made.token, (await get('/api/organizations/gone')).id)).toBe(false);
    expect(await post(url, { slug: 'gone', reason: 'x' })).toMatchObject({ status: 404 });
    expect((await found('&q=gone')).total).toBe(0);
    expect((await found('&q=gone&deleted=yes')).rows).toMatchObject([
      { slug: 'gone', tokens: 0, deletedAt: expect.any(String) },
    ]);
    expect(await post('/api/organizations/gone/tokens', { scopes: ['machines:read'] })).toMatchObject({
      status: 404,
    });
  });
});

describe('tokens', () => {
  const tokens = async (slug: string, query = '') =>
    (await get(`/api/organizations/${slug}/tokens${query}`)) as TokensAnswer;
  const make = async (payload: object) => {
    const { status, body } = await post('/api/organizations/acme/tokens', payload);
    expect(status).toBe(200);
    return body as MadeToken & { published: boolean };
  };
  const works = async (token: string) => {
    const { id } = await get('/api/organizations/acme');
    return tokenWorks(scene.worker.store.db, token, id);
  };

  it('are listed in pages, valid ones first', async () => {
    const [{ slug } = expect.unreachable('none')] = await scene.worker.store.sql<{ slug: string }[]>`
      select slug from organizations where id % 5 = 4 limit 1`;
    const all = await tokens(slug);
    expect(all).toMatchObject({ total: 5, good: 3 });
    expect(all.rows.map(({ state }) => state).toSorted()).toEqual([
      'expired',
      'good',
      'good',
      'good',
      'revoked',
    ]);
    expect(all.rows.slice(0, 3).every(({ state }) => state === 'good')).toBe(true);
    const pages = [await tokens(slug, '?limit=2'), await tokens(slug, '?limit=3&offset=2')];
    expect(pages.flatMap(({ rows }) => rows)).toEqual(all.rows);
  });

  it('are created, shown once and work; no other answer contains them', async () => {
    const made = await make({
      scopes: ['clusters:read', 'machines:read'],
      expires: '90d',
      reason: 'for CI',
      name: 'ci',
    });
    expect(made).toMatchObject({
      organization: 'acme',
      name: 'ci',
      scopes: ['machines:read', 'clusters:read'],
      published: true,
    });
    expect(isWellFormedToken(made.token)).toBe(true);
    expect(await works(made.token)).toBe(true);
    const days = (Date.parse(made.expiresAt ?? '') - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(89.9);
    expect(days).toBeLessThanOrEqual(90);
    expect(await newest()).toMatchObject({
      action: 'token.create',
      subject: { kind: 'token', id: String(made.id) },
      reason: 'for CI',
      details: { organization: 'acme', name: 'ci' },
    });
    const answers = [await tokens('acme'), await get('/api/audit', 'zoe'), await found()];
    const { rows } = await auditRecords(scene.worker.store.db, {});
    expect(JSON.stringify([answers, rows])).not.toContain(made.token);
    expect((await tokens('acme')).rows[0]).toMatchObject({
      id: made.id,
      name: 'ci',
      state: 'good',
      lastUsedAt: null,
    });
  });

  it.each([
    ['scopes', {}],
    ['expires', { scopes: ['machines:read'], expires: 90 }],
    ['reason', { scopes: ['machines:read'], reason: 'two\nlines' }],
  ])('are not created with bad %s: %j', async (field, payload) => {
    const before = await tokens('acme');
    const answer = await post('/api/organizations/acme/tokens', payload);
    expect(answer).toMatchObject({ status: 400, body: { field } });
    expect(await tokens('acme')).toEqual(before);
  });

  it('are rotated', async () => {
    const first = await make({ scopes: ['machines:read'] });
    const { body: second } = await post(`/api/tokens/${first.id}/rotate`, { grace: '1h' });
    expect(second).toMatchObject({ organization: 'acme', scopes: ['machines:read'], published: true });
    expect(second.old).toEqual({ id: first.id, expiresAt: expect.any(String) });
    const { body: third } = await post(`/api/tokens/${second.id}/rotate`, { reason: 'leaked' });
    expect(third.old).toEqual({ id: second.id, expiresAt: null });
    expect([await works(first.token), await works(third.token)]).toEqual([true, true]);
    expect(await newest()).toMatchObject({ action: 'token.rotate', reason: 'leaked' });
    expect(await post(`/api/tokens/${second.id}/rotate`, {})).toMatchObject({
      status: 409,
      body: { error: `token ${second.id} is revoked and cannot be rotated; create a new one` },
    });
    expect(await post(`/api/tokens/${third.id}/rotate`, { grace: 'long' })).toMatchObject({
      status: 400,
      body: { field: 'grace' },
    });
    expect(await post('/api/tokens/999999/rotate', {})).toMatchObject({ status: 404 });
  });

  it('are revoked with a reason, once', async () => {
    const made = await make({ scopes: ['machines:read'] });
    const url = `/api/tokens/${made.id}/revoke`;
    expect(await post(url, {})).toMatchObject({ status: 400, body: { field: 'reason' } });
    expect(await works(made.token)).toBe(true);
    expect(await post(url, { reason: 'leaked' })).toEqual({
      status: 200,
      body: { id: made.id, wasRevoked: false, published: true },
    });
    expect(await works(made.token)).toBe(false);
    expect(await newest()).toMatchObject({ action: 'token.revoke', reason: 'leaked' });
    expect(await post(url, { reason: 'again' })).toMatchObject({ body: { wasRevoked: true } });
    expect(await newest()).toMatchObject({ reason: 'leaked' });
    expect(await post('/api/tokens/999999/revoke', { reason: 'x' })).toMatchObject({ status: 404 });
  });
});

describe('people', () => {
  const users = async () => ((await get('/api/organizations/acme/users')) as UsersAnswer).rows;

  it('are listed, renamed and deleted', async () => {
    await scene.worker.store.sql`
      insert into users (organization_id, first_name, last_name)
      select id, 'Ada', 'Lovelace' from organizations where slug = 'acme'`;
    const [ada] = await users();
    expect(ada).toMatchObject({ firstName: 'Ada', lastName: 'Lovelace', clusters: 0 });
    const url = `/api/organizations/acme/users/${ada?.id}`;
    expect(await post(`${url}/rename`, { firstName: ' ' })).toMatchObject({ status: 400 });
    const renamed = await post(`${url}/rename`, { firstName: 'Augusta', lastName: 'King' });
    expect(renamed).toMatchObject({ status: 200, body: { firstName: 'Augusta', published: true } });
    expect(await users()).toMatchObject([{ id: renamed.body.id, firstName: 'Augusta' }]);
    const other = `/api/organizations/acme/users/${renamed.body.id}`;
    expect(await post(`${other}/delete`, {})).toMatchObject({ status: 400, body: { field: 'reason' } });
    expect(await post(`${other}/delete`, { reason: 'asked for it' })).toMatchObject({ status: 200 });
    expect(await users()).toEqual([]);
    expect(await newest()).toMatchObject({ action: 'user.delete', details: { organization: 'acme' } });
    expect(await post(`${other}/delete`, { reason: 'x' })).toMatchObject({ status: 404 });
    expect(await post('/api/organizations/unknown/users/1/delete', { reason: 'x' })).toMatchObject({
      status: 404,
    });
  });
});

it('operators are listed to admins alone', async () => {
  const { db } = scene.worker.store;
  await addOperators(scene.worker, { eve: 'viewer' });
  await setOperatorDisabled(db, OPERATOR, 'eve', true);
  const person = { issuer: 'https://issuer.example', subject: '7', address: 'Olga@example.com' } as const;
  await signInByOidc(db, { ...person, role: 'viewer' }, '127.0.0.1');
  expect((await as('ada').sendRequest('GET', '/api/operators')).statusCode).toBe(403);
  const byToken = { signsInBy: 'token', tokens: 1, verifiedAddress: null };
  expect(await get('/api/operators', 'zoe')).toMatchObject({
    rows: [
      { name: 'ada', role: 'operator', ...byToken, disabledAt: null },
      { name: 'eve', disabledAt: expect.any(String), lastSeenAt: null },
      {
        name: 'olga@example.com',
        role: 'viewer',
        signsInBy: 'oidc',
        verifiedAddress: 'Olga@example.com',
        lastSeenAt: expect.any(String),
      },
      { name: 'vera', role: 'viewer' },
      { name: 'zoe', role: 'admin' },
    ],
  });
});

describe('a role', () => {
  const CHANGES = [
    '/api/organizations',
    '/api/organizations/acme/rename',
    '/api/organizations/acme/delete',
    '/api/organizations/acme/tokens',
    '/api/organizations/acme/users/1/rename',
    '/api/organizations/acme/users/1/delete',
    '/api/tokens/1/rotate',
    '/api/tokens/1/revoke',
  ];
  const READS = [
    '/api/organizations',
    '/api/organizations/acme',
    '/api/organizations/acme/tokens',
    '/api/organizations/acme/users',
    '/api/clusters',
    '/api/cluster-terms',
  ];

  it.each(CHANGES)('other than admin cannot change anything by %s', async (url) => {
    const before = await newest();
    const everything = { slug: 'acme', name: 'x', reason: 'x', scopes: ['machines:read'] };
    for (const [name, role] of [
      ['vera', 'viewer'],
      ['ada', 'operator'],
    ] as const) {
      expect(await post(url, everything, name)).toEqual({
        status: 403,
        body: { error: `This needs the role admin; ${name} has the role ${role}.` },
      });
    }
    expect(await newest()).toEqual(before);
  });

  it.each(READS)('of any kind may read %s', async (url) => {
    for (const name of ['vera', 'ada', 'zoe'])
      expect((await as(name).sendRequest('GET', url)).statusCode).toBe(200);
    expect((await new Browser(scene.app).sendRequest('GET', url)).statusCode).toBe(401);
  });

  it.each(['/api/audit', '/api/audit-terms'])('of a viewer may not read %s', async (url) => {
    expect((await as('vera').sendRequest('GET', url)).json()).toEqual({
      error: 'This needs the role operator; vera has the role viewer.',
    });
    const head = { method: 'HEAD', url, cookies: Object.fromEntries(as('vera').cookies) } as const;
    expect((await scene.app.inject(head)).statusCode).toBe(403);
    for (const name of ['ada', 'zoe']) expect((await as(name).sendRequest('GET', url)).statusCode).toBe(200);
  });

  it('cannot be used by another site', async () => {
    const answer = await as('zoe').sendRequest('POST', '/api/organizations', {
      payload: { slug: 'evil' },
      headers: { 'sec-fetch-site': 'cross-site' },
    });
    expect(answer.statusCode).toBe(403);
    expect((await found('&q=evil')).total).toBe(0);
  });
});
