/** Row-level security and the predicates of statements, each without the other. */
import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore, type Sql, type Store } from '../../src/db/connection/connect.ts';
import { createToken } from '../../src/db/tokens.ts';
import { hashToken } from '../../src/domain/token.ts';
import { appendChanges } from '../../src/features/feed/append-changes.ts';
import { loadContent, loadVersion } from '../../src/snapshot/document/load.ts';
import { cluster, disk } from '../sync/clusters/rows.ts';
import { offer, openScene, region, type Scene } from '../sync/scene.ts';

let scene: Scene;
let reader: Store;
let organizations: Record<'one' | 'two', number>;
let token: string;

beforeAll(async () => {
  scene = await openScene();
  reader = openStore({ url: scene.db.url, role: 'reader' });
  organizations = { one: await scene.organization('one'), two: await scene.organization('two') };
  await scene.sql`update organizations set name = 'name of ' || slug`;
  await scene.catalogue([region('a'), offer('a', 'x')]);
  await scene.clusters(
    ['one', 'two'].flatMap((organization) => {
      const user = { firstName: 'Creator of', lastName: marker(organization) };
      const common = { organization, user, disks: [disk(`disk of ${organization}`)] };
      return [
        cluster('listed', { ...common, name: `cluster of ${organization}` }),
        cluster('unlisted', {
          ...common,
          provider: `cloud of ${organization}`,
          region: { code: 'dc-7', name: `cellar of ${organization}` },
          machine: { name: `box of ${organization}`, cpu: 3, ram: 5, ramUnit: 'Binary' },
        }),
        // An unlisted machine type in a listed region.
        cluster('odd', {
          ...common,
          machine: { name: `oddity of ${organization}`, cpu: 3, ram: 5, ramUnit: 'Binary' },
        }),
      ];
    }),
  );
  await appendChanges(scene.store.db, 'all');
  await scene.sql`
    with file as (
      insert into exports (version, file, coding, bytes, rows, hash, chunk_bytes, created_at)
      values ('v', 'machines.csv', 'identity', 3, 1, 'h', 3, now()) returning id
    )
    insert into export_chunks (export_id, position, data) select id, 0, 'id\n'::bytea from file`;
  await scene.sql`
    insert into price_book_entries (organization_id, family, discount, valid_from)
    select id, 'family of ' || slug, 10, now() from organizations`;
  // The scene's offers have one term.
  await scene.sql`insert into machine_terms (machine_id, valid_from, terms) select id, now(), '{}' from machines`;
  await scene.sql`insert into machine_availability (machine_id, changed_at, after) select id, now(), 'sold_out' from machines`;
  await scene.sql`insert into lifecycles (source_id, engine, name, has_ended) values ('acme', 'mysql', '8.4', false)`;
  await scene.sql`insert into region_prices (region_id, valid_from, prices) select id, now(), '[]' from regions where code = 'a'`;
  await scene.sql`
    with plan as (
      insert into database_plans (region_id, engine, name, source_amount, source_per, source_currency, source_id)
      select id, 'mysql', 'x', 1, 'hour', 'USD', 'acme' from regions where code = 'a' returning id
    )
    insert into database_plan_prices (plan_id, valid_from, source_amount, source_per, source_currency)
    select id, now(), 1, 'hour', 'USD' from plan`;
  ({ token } = await createToken(scene.store.db, {
    organizationId: organizations.two,
    scopes: ['clusters:read'],
  }));
});
afterAll(async () => {
  await reader[Symbol.asyncDispose]();
  await scene[Symbol.asyncDispose]();
});

const SCOPED = ['organizations', 'users', 'disk_types', 'clusters', 'disks', 'price_book_entries'];
/** The suffix of all names of an organization here. */
const marker = (organization: string) => `of ${organization}`;

interface Table {
  readonly name: string;
  /** Columns that the reader may select. */
  readonly columns: readonly string[];
}

/** Every table and view in the catalog of the database, so that the tests include new ones. */
const tables = () =>
  scene.sql<Table[]>`
    select c.relname as name, array(
        select a.attname::text from pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
          and has_column_privilege('fleetbook_reader', c.oid, a.attnum, 'select')
        order by a.attnum) as columns
    from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')
    order by 1`;

describe('without any predicate', () => {
  /** All rows of a table that the reader's role can read, as text. */
  const seen = async (table: Table, organization?: string): Promise<string[]> => {
    const [, rows] = await reader.sql.begin('read only', (sql) => [
      organization === undefined ? sql`select` : sql`select set_config('app.org_id', ${organization}, true)`,
      sql<{ row: string }[]>`
        select t::text as row from (select ${sql(table.columns)} from ${sql(table.name)}) t`,
    ]);
    return rows.map(({ row }) => row);
  };
  const readable = async () => (await tables()).filter(({ columns }) => columns.length > 0);
  const named = async (name: string): Promise<Table> =>
    (await tables()).find((table) => table.name === name) ?? expect.unreachable(name);

  it('the reader sees in every table all rows of its organization, and no byte of another one', async () => {
    const found = await readable();
    expect(found.map(({ name }) => name)).toEqual(
      expect.arrayContaining([...SCOPED, 'machines', 'providers']),
    );
    const withMarkers: string[] = [];
    for (const table of found) {
      const all = (
        await scene.sql<{ row: string }[]>`select t::text as row from ${scene.sql(table.name)} t`
      ).map(({ row }) => row);
      expect(all, `the scene above puts no row into ${table.name}, so that nothing is tested`).not.toEqual(
        [],
      );
      for (const [slug, id] of Object.entries(organizations)) {
        const other = slug === 'one' ? 'two' : 'one';
        const rows = (await seen(table, String(id))).join('\n');
        expect(rows, table.name).not.toContain(marker(other));
        const own = all.filter((row) => row.includes(marker(slug))).length;
        expect(rows.split(marker(slug)).length > 1, table.name).toBe(own > 0);
        if (own > 0) withMarkers.push(table.name);
      }
      for (const unknown of [undefined, '', '999999']) {
        expect((await seen(table, unknown)).join('\n'), table.name).not.toMatch(/of (one|two)/);
      }
    }
    expect(new Set(withMarkers)).toEqual(
      new Set([
        'organizations',
        'users',
        'disk_types',
        'clusters',
        'price_book_entries',
        'regions',
        'machines',
        'providers',
      ]),
    );
  });

  it('row-level security is forced on every table with rows of organizations', async () => {
    const loose = await scene.sql`
      select distinct c.relname from pg_class c
      left join pg_attribute a on a.attrelid = c.oid and a.attname = 'organization_id' and not a.attisdropped
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
        and (a.attname is not null or c.relname in ('organizations', 'machines', 'providers'))
        and not (c.relrowsecurity and c.relforcerowsecurity)`;
    expect(loose).toEqual([]);
  });

  it('the reader may call only three kinds of functions that run as the owner', async () => {
    const functions = await scene.sql`
      select proname as name from pg_proc
      where pronamespace = 'public'::regnamespace and prosecdef
        and has_function_privilege('fleetbook_reader', oid, 'execute')
      order by 1`;
    expect(functions.map(({ name }) => name)).toEqual([
      'authenticate_token',
      'feed_organizations',
      'note_token_use',
    ]);
  });

  it.each(SCOPED)('the reader sees nothing of %s before it sets its organization', async (table) => {
    expect(await seen(await named(table))).toEqual([]);
    expect(await seen(await named(table), '')).toEqual([]);
    expect(await reader.sql`select from ${reader.sql(table)}`).toHaveLength(0);
  });

  it.each(SCOPED)('the reader sees only rows of its organization in %s', async (table) => {
    const key = table === 'organizations' ? 'id' : 'organization_id';
    const owned = { name: table, columns: [key] };
    for (const id of Object.values(organizations)) {
      const rows = await seen(owned, String(id));
      expect(rows.length).toBeGreaterThan(0);
      expect(new Set(rows)).toEqual(new Set([`(${id})`]));
    }
    expect(await seen(owned, '999999')).toEqual([]);
  });

  it('the reader sees the regions of catalogues and of its organization', async () => {
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

  it('the reader sees changes for every organization and for its own', async () => {
    const changes: Table = { name: 'feed_changes', columns: ['organization_id', 'region_id', 'slugs'] };
    expect((await seen(changes)).join()).not.toContain('cluster-');
    expect(await seen(changes)).not.toEqual([]);
    const one = (await seen(changes, String(organizations.one))).join();
    expect(one).toContain('cluster-of-one');
    expect(one).not.toContain('cluster-of-two');
  });

  it('the setting of the organization ends with the transaction, on every connection of the pool', async () => {
    const clusters = await named('clusters');
    await Promise.all(Array.from({ length: 8 }, () => seen(clusters, String(organizations.one))));
    const after = await Promise.all(Array.from({ length: 8 }, () => reader.sql`select from clusters`));
    expect(after.map((rows) => rows.length)).toEqual(Array(8).fill(0));
  });

  it('an invalid id of an organization is an error and returns no row', async () => {
    const clusters = await named('clusters');
    await expect(seen(clusters, "1' or 'a'='a")).rejects.toMatchObject({ code: '22P02' });
    await expect(seen(clusters, '1 or true')).rejects.toMatchObject({ code: '22P02' });
  });
});

describe('tokens', () => {
  it('cannot be read, counted or listed by the reader', async () => {
    for (const what of ['*', 'id', 'hash', 'count(*)', '']) {
      await expect(reader.sql.unsafe(`select ${what} from tokens`)).rejects.toMatchObject({ code: '42501' });
    }
  });

  it('lead to their organization only by the whole digest', async () => {
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

  it('cannot read tables without a grant, e.g. those of operators and tokens', async () => {
    const closed = (await tables()).filter(({ columns }) => columns.length === 0).map(({ name }) => name);
    expect(closed).toEqual(
      expect.arrayContaining([
        'audit_log',
        'held_batches',
        'held_items',
        'operators',
        'quarantined_rows',
        'sync_runs',
        'tokens',
      ]),
    );
    for (const table of closed) {
      await expect(reader.sql`select from ${reader.sql(table)}`).rejects.toMatchObject({ code: '42501' });
    }
  });

  it('can record the use of tokens, and changes nothing else by that', async () => {
    const but = () => scene.sql`
      select id, organization_id, hash, scopes, created_at, expires_at, revoked_at, version, published_version
      from tokens order by id`;
    const before = await but();
    const ids = before.map(({ id }) => id);
    await reader.sql`select note_token_use(${ids}::int[], ${ids.map(() => '2999-01-01T00:00:00Z')}::timestamptz[])`;
    expect(await but()).toEqual(before);
    const [ahead] = await scene.sql`select count(*)::int from tokens where last_used_at > now()`;
    expect(ahead).toEqual({ count: 0 });
    for (const odd of [null, []]) await reader.sql`select note_token_use(${odd}::int[], null)`;
  });

  it('sees only the public columns of sources', async () => {
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
        { name: 'odd' },
        { provider: { name: `cloud of ${slug}` }, region: { name: `cellar of ${slug}` } },
      ]);
      expect(text).not.toContain(`of ${slug === 'one' ? 'two' : 'one'}`);
      expect(content).toEqual(await loadContent(reader.sql, name));
      const book = { kind: 'price-book', organizationId: organizations[slug] } as const;
      const entries = await loadContent(unbound, book);
      expect(JSON.parse(entries?.body.toString() ?? '')).toMatchObject([{ family: `family of ${slug}` }]);
      expect(entries).toEqual(await loadContent(reader.sql, book));
      expect(await loadVersion(unbound, name)).toBe(content?.version);
    },
  );

  it('a region that only clusters name is not a document of the catalogue', async () => {
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

  it('a deleted organization has an empty document, and its token does not work', async () => {
    await scene.sql`update organizations set deleted_at = now() where slug = 'two'`;
    for (const sql of [unbound, reader.sql]) {
      const name = { kind: 'clusters', organizationId: organizations.two } as const;
      expect((await loadContent(sql, name))?.body.toString()).toBe('[]');
      const book = { kind: 'price-book', organizationId: organizations.two } as const;
      expect((await loadContent(sql, book))?.body.toString()).toBe('[]');
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
  ])('guarantees that %s', async (_, statement) => {
    await expect(scene.sql.unsafe(statement)).rejects.toMatchObject({ code: '23503' });
  });

  it('rejects published machines without a price, with price 0 or with a fraction of memory', async () => {
    for (const fields of ['price = null', 'price = 0', 'ram = 1.5']) {
      await expect(
        scene.sql.unsafe(`update machines set excluded_reason = null, ${fields}`),
      ).rejects.toMatchObject({
        code: '23514',
      });
    }
  });
});
