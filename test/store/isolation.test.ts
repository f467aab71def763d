/** Row-level security, and the predicates, each without the other. */
import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashToken } from '../../src/domain/token.ts';
import { loadContent, loadVersion } from '../../src/snapshot/load.ts';
import { openStore, type Sql, type Store } from '../../src/store/connect.ts';
import { createToken } from '../../src/store/tokens.ts';
import { cluster, disk } from '../sync/cluster-rows.ts';
import { offer, openScene, region, type Scene } from '../sync/scene.ts';

let scene: Scene;
let reader: Store;
let organizations: Record<'one' | 'two', number>;
let token: string;

beforeAll(async () => {
  scene = await openScene();
  reader = openStore({ url: scene.db.url, role: 'reader' });
  organizations = { one: await scene.organization('one'), two: await scene.organization('two') };
  await scene.catalogue([region('a'), offer('a', 'x')]);
  await scene.clusters(
    ['one', 'two'].flatMap((organization) => {
      const user = { firstName: 'Creator of', lastName: organization };
      const common = { organization, user, disks: [disk(`disk of ${organization}`)] };
      return [
        cluster('listed', { ...common, name: `cluster of ${organization}` }),
        cluster('unlisted', { ...common, region: { code: 'dc-7', name: `cellar of ${organization}` } }),
      ];
    }),
  );
  ({ token } = await createToken(scene.store.db, {
    organizationId: organizations.two,
    scopes: ['clusters:read'],
  }));
});
afterAll(async () => {
  await reader[Symbol.asyncDispose]();
  await scene[Symbol.asyncDispose]();
});

const SCOPED = ['organizations', 'users', 'disk_types', 'clusters', 'disks'];

describe('without any predicate', () => {
  /** Everything that raw SQL in the reader's role sees of a table, as text. */
  const seen = async (table: string, organization?: string) => {
    const [, rows] = await reader.sql.begin('read only', (sql) => [
      organization === undefined ? sql`select` : sql`select set_config('app.org_id', ${organization}, true)`,
      sql<{ id: number; row: string }[]>`select t::text as row, ${
        table === 'organizations' ? sql`id` : sql`organization_id`
      } as id from ${sql(table)} t`,
    ]);
    return rows;
  };

  it.each(SCOPED)('the reader sees nothing of %s before it says for whom it reads', async (table) => {
    expect(await seen(table)).toEqual([]);
    expect(await seen(table, '')).toEqual([]);
    expect(await reader.sql`select from ${reader.sql(table)}`).toHaveLength(0);
  });

  it.each(SCOPED)(
    'the reader sees of %s what is its organization’s, and not a byte of another’s',
    async (table) => {
      for (const [slug, id] of Object.entries(organizations)) {
        const rows = await seen(table, String(id));
        expect(rows.length).toBeGreaterThan(0);
        expect(new Set(rows.map((row) => row.id))).toEqual(new Set([id]));
        const other = slug === 'one' ? 'two' : 'one';
        expect(rows.map(({ row }) => row).join('\n')).not.toContain(`of ${other}`);
      }
      expect(await seen(table, '999999')).toEqual([]);
    },
  );

  it('the reader sees the regions of catalogues, and those of its own organization', async () => {
    const names = async (organization?: string) => {
      const [, rows] = await reader.sql.begin('read only', (sql) => [
        organization === undefined
          ? sql`select`
          : sql`select set_config('app.org_id', ${organization}, true)`,
        sql<{ name: string }[]>`select name from regions order by name`,
      ]);
      return rows.map(({ name }) => name);
    };
    expect(await names()).toEqual(['A']);
    expect(await names(String(organizations.one))).toEqual(['A', 'cellar of one']);
    expect(await names(String(organizations.two))).toEqual(['A', 'cellar of two']);
    expect(await names()).toEqual(['A']);
  });

  it('the organization is forgotten with the transaction, on every connection of the pool', async () => {
    await Promise.all(Array.from({ length: 8 }, () => seen('clusters', String(organizations.one))));
    const after = await Promise.all(Array.from({ length: 8 }, () => reader.sql`select from clusters`));
    expect(after.map((rows) => rows.length)).toEqual(Array(8).fill(0));
  });

  it('what is no organization’s id is an error and no row', async () => {
    await expect(seen('clusters', "1' or 'a'='a")).rejects.toMatchObject({ code: '22P02' });
    await expect(seen('clusters', '1 or true')).rejects.toMatchObject({ code: '22P02' });
  });
});

describe('tokens', () => {
  it('cannot be read, counted or listed by the reader', async () => {
    for (const what of ['*', 'id', 'hash', 'count(*)', '']) {
      await expect(reader.sql.unsafe(`select ${what} from tokens`)).rejects.toMatchObject({ code: '42501' });
    }
  });

  it('lead to their organization by the whole hash only', async () => {
    const hash = Buffer.from(hashToken(token), 'hex');
    const found = (bytes: Buffer) =>
      reader.sql`select organization_id, scopes, revoked from authenticate_token(${bytes})`;
    expect(await found(hash)).toEqual([
      { organization_id: organizations.two, scopes: ['clusters:read'], revoked: false },
    ]);
    expect(await found(hash.subarray(0, 31))).toEqual([]);
    expect(await found(Buffer.alloc(32))).toEqual([]);
    expect(await found(Buffer.alloc(0))).toEqual([]);
    expect(await reader.sql`select * from authenticate_token(null)`).toEqual([]);
  });
});

describe('the reader', () => {
  it.each([
    ['organizations', "insert into organizations (slug, name) values ('x', 'x')"],
    ['clusters', 'delete from clusters'],
    ['machines', 'update machines set price = 0'],
    ['regions', 'update regions set version = version + 1'],
    ['lineage', 'update lineage set id = gen_random_uuid()'],
    ['providers', 'truncate providers cascade'],
    ['tokens', 'update tokens set revoked_at = null'],
    ['a new table', 'create table public.own (a int)'],
    ['sequences', "select nextval('machines_id_seq')"],
    ['policies', 'alter table clusters no force row level security'],
    ['roles', 'grant fleetbook_worker to fleetbook_reader'],
  ])('cannot write: %s', async (_, statement) => {
    await expect(reader.sql.unsafe(statement)).rejects.toMatchObject({ code: '42501' });
  });

  it.each(['sync_runs', 'held_batches', 'held_items', 'quarantined_rows', 'schedule_slots'])(
    'cannot read %s, which is the operators’',
    async (table) => {
      await expect(reader.sql`select from ${reader.sql(table)}`).rejects.toMatchObject({ code: '42501' });
    },
  );

  it('sees of sources only what readers are shown', async () => {
    expect(await reader.sql`select id, kind from sources order by id`).toHaveLength(2);
    await expect(reader.sql`select fence from sources`).rejects.toMatchObject({ code: '42501' });
  });
});

describe('the worker', () => {
  it.each([...SCOPED, 'regions', 'tokens', 'machines', 'machine_prices', 'sources', 'sync_runs'])(
    'sees every row of %s',
    async (table) => {
      const all = await scene.sql`select count(*)::int from ${scene.sql(table)}`;
      expect(all).not.toEqual([{ count: 0 }]);
      expect(await scene.store.sql`select count(*)::int from ${scene.sql(table)}`).toEqual(all);
    },
  );
});

describe('by the predicates alone', () => {
  let unbound: Sql;
  const role = `unbound_${randomBytes(6).toString('hex')}`;
  beforeAll(async () => {
    await scene.sql.unsafe(`create role ${role} bypassrls; grant fleetbook_reader to ${role}`);
    unbound = postgres(scene.db.url, { max: 2, connection: { role }, onnotice: () => {} });
  });
  afterAll(async () => {
    await unbound.end({ timeout: 5 });
    await scene.sql.unsafe(`drop role ${role}`);
  });

  it.each(['one', 'two'] as const)(
    'a document of %s holds its own clusters, also where no policy holds',
    async (slug) => {
      const [all] = await unbound`select count(distinct organization_id)::int from clusters`;
      expect(all).toEqual({ count: 2 });
      const name = { kind: 'clusters', organizationId: organizations[slug] } as const;
      const content = await loadContent(unbound, name);
      const text = content?.body.toString() ?? expect.unreachable();
      expect(JSON.parse(text)).toMatchObject([
        { name: `cluster of ${slug}` },
        { region: { name: `cellar of ${slug}` } },
      ]);
      expect(text).not.toContain(`of ${slug === 'one' ? 'two' : 'one'}`);
      expect(content).toEqual(await loadContent(reader.sql, name));
      expect(await loadVersion(unbound, name)).toBe(content?.version);
    },
  );

  it('a region that an organization’s clusters named is no document of the catalogue', async () => {
    const cellars = await scene.sql<
      { id: number }[]
    >`select id from regions where organization_id is not null`;
    expect(cellars).toHaveLength(2);
    for (const { id } of cellars) {
      expect(await loadContent(unbound, { kind: 'region', regionId: id })).toBeUndefined();
      expect(await loadVersion(unbound, { kind: 'region', regionId: id })).toBeUndefined();
    }
    const providers = await loadContent(unbound, { kind: 'providers' });
    expect(providers?.body.toString()).not.toContain('cellar');
  });

  it('a deleted organization has no document and its token no use', async () => {
    await scene.sql`update organizations set deleted_at = now() where slug = 'two'`;
    for (const sql of [unbound, reader.sql]) {
      const name = { kind: 'clusters', organizationId: organizations.two } as const;
      expect(await loadContent(sql, name)).toBeUndefined();
      expect(await loadVersion(sql, name)).toBeUndefined();
    }
    const hash = Buffer.from(hashToken(token), 'hex');
    expect(await reader.sql`select revoked from authenticate_token(${hash})`).toEqual([{ revoked: true }]);
    await scene.sql`update organizations set deleted_at = null`;
  });
});

describe('the database itself', () => {
  it.each([
    [
      'a cluster’s creator is one of its organization’s people',
      `update clusters c set user_id = (select id from users u where u.organization_id <> c.organization_id limit 1)`,
    ],
    [
      'a disk’s type is its organization’s',
      `update disks d set disk_type_id = (select id from disk_types t where t.organization_id <> d.organization_id limit 1)`,
    ],
    [
      'a disk’s cluster is its organization’s',
      `update disks d set position = d.cluster_id, cluster_id = (select id from clusters c where c.organization_id <> d.organization_id limit 1)`,
    ],
  ])('sees to it that %s', async (_, statement) => {
    await expect(scene.sql.unsafe(statement)).rejects.toMatchObject({ code: '23503' });
  });

  it('takes no unpriced, free or broken machine for a published one', async () => {
    for (const fields of ['price = null', 'price = 0', 'ram = 1.5']) {
      await expect(
        scene.sql.unsafe(`update machines set excluded_reason = null, ${fields}`),
      ).rejects.toMatchObject({
        code: '23514',
      });
    }
  });
});
