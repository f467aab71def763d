import { beforeEach, describe, expect, it } from 'vitest';
import { createToken } from '../../src/db/tokens.ts';
import { type RowName, rowName } from '../../src/domain/document-name.ts';
import { hashToken } from '../../src/domain/token.ts';
import { decodeDocument, encodeDocument, HEADER_LENGTH } from '../../src/snapshot/document/format.ts';
import type { DocumentName } from '../../src/snapshot/document/keys.ts';
import { loadContent } from '../../src/snapshot/document/load.ts';
import { until } from '../support/until.ts';
import { addMachines, reprice } from './rows.ts';
import { loseEntry, type ReaderOptions, sceneForEachTest, type TestReader } from './scene.ts';

const scene = sceneForEachTest();

let token: string;

beforeEach(async () => {
  await addMachines(scene.sql, scene.sample.region, 40);
  const organizationId = scene.sample.a;
  ({ token } = await createToken(scene.store.db, { organizationId, scopes: ['clusters:read'] }));
  await scene.publisher.publishDirty();
});

const NAMES: Record<string, () => DocumentName> = {
  'the list of providers': () => ({ kind: 'providers' }),
  'a region': () => ({ kind: 'region', regionId: scene.sample.region }),
  'an organization’s clusters': () => ({ kind: 'clusters', organizationId: scene.sample.a }),
  'a token': () => ({ kind: 'token', hash: hashToken(token) }),
};

/** Each kind of damage, as a value for a document. */
const DAMAGE: Record<string, (name: DocumentName) => Buffer | Promise<Buffer>> = {
  'a checksum that is wrong': async (name) => {
    const value = Buffer.from(await good(name));
    value[value.length - 3] = (value[value.length - 3] ?? 0) ^ 1;
    return value;
  },
  'a value that is cut short': async (name) => (await good(name)).subarray(0, -7),
  'a first line alone': async (name) => (await good(name)).subarray(0, HEADER_LENGTH),
  'bytes of something else': () => Buffer.from('<html>not found</html>'),
};

async function good(name: DocumentName): Promise<Buffer> {
  return encodeDocument(
    (await loadContent(scene.sql, name)) ?? expect.unreachable('there is no such document'),
  );
}

const inCache = async (name: DocumentName) => {
  const value = await scene.cache.getBuffer(scene.keys.document(name));
  return value ? decodeDocument(name, value) : undefined;
};

const readers: Record<RowName['kind'], (reader: TestReader) => Promise<unknown>> = {
  providers: async (reader) =>
    (await reader.catalogue.machines(scene.sample.provider, scene.sample.region)).body.identity,
  region: async (reader) => (await reader.catalogue.machine(scene.sample.small))?.body.identity,
  clusters: async (reader) => (await reader.clusters.cluster(scene.sample.a, 'cluster-test'))?.body.identity,
  token: async (reader) => reader.tokens.verify(token),
};

/** A reader that is linked before it has read a document. */
async function linkedWithoutRead(options?: Partial<ReaderOptions>): Promise<TestReader> {
  const reader = scene.reader(options);
  await until(() => reader.documents.checkPostgres());
  await until(() => reader.link.linked);
  return reader;
}

it.each(Object.entries(NAMES))(
  'under the key of %s, an unusable value is a miss, is counted, and is replaced',
  async (_, nameOf) => {
    const name = nameOf();
    const content = await loadContent(scene.sql, name);
    const answered = await readers[rowName(name).kind](scene.reader());
    for (const [what, damage] of Object.entries(DAMAGE)) {
      await scene.cache.set(scene.keys.document(name), await damage(name));
      const unusable: string[] = [];
      await using reader = await linkedWithoutRead({ onUnusable: (kind) => unusable.push(kind) });
      expect(await readers[rowName(name).kind](reader), what).toEqual(answered);
      expect(unusable, what).toEqual([name.kind]);
      // On a busy machine a write-back may miss its deadline: the next cold reader repeats it.
      await until(
        async () => {
          if ((await inCache(name))?.version === content?.version) return true;
          await using cold = await linkedWithoutRead();
          await readers[rowName(name).kind](cold);
          // Only workers write tokens.
          if (name.kind === 'token') await scene.publisher.compare();
          return false;
        },
        { what, everyMs: 100 },
      );
      await using later = await linkedWithoutRead({ onUnusable: (kind) => unusable.push(kind) });
      expect(await readers[rowName(name).kind](later), what).toEqual(answered);
      expect(unusable, what).toHaveLength(1);
    }
  },
);

describe('under the key of a region', () => {
  const region = () => ({ kind: 'region', regionId: scene.sample.region }) as const;
  const machines = (reader: TestReader) =>
    reader.catalogue.machines(scene.sample.provider, scene.sample.region);

  it('another region’s document is a miss, is counted, and is replaced', async () => {
    const other = { kind: 'region', regionId: scene.sample.emptyRegion } as const;
    await scene.cache.set(scene.keys.document(region()), await good(other));
    const unusable: string[] = [];
    const reader = await scene.linkedReader({ onUnusable: (kind) => unusable.push(kind) });
    expect(JSON.parse((await machines(reader)).body.identity.toString())).toHaveLength(42);
    expect(unusable).toEqual(['region']);
    await until(async () => (await inCache(region())) !== undefined);
  });

  it('an older version is a miss for a reader that gave a newer one, and is replaced', async () => {
    const old = await good(region());
    const reader = await scene.linkedReader();
    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    await until(async () => (await reader.documents.get(region())).document?.version === version);
    await scene.cache.set(scene.keys.document(region()), old);
    const { epoch } = reader.link;
    await loseEntry(scene);
    await until(() => reader.link.epoch > epoch);
    const { document } = await reader.documents.get(region());
    expect(document?.version).toBe(version);
    await scene.publisher.compare();
    expect((await inCache(region()))?.version).toBe(version);
  });

  it('a value of another type is a miss, and is replaced by the comparison', async () => {
    await scene.cache.del(scene.keys.document(region()));
    await scene.cache.hset(scene.keys.document(region()), 'a', 'b');
    const reader = await scene.linkedReader();
    expect((await machines(reader)).tier).toBe('postgres');
    await scene.publisher.compare();
    await until(async () => (await inCache(region())) !== undefined);
  });

  it('an unusable value blocks no publication, whatever version it names', async () => {
    const value = Buffer.from(await good(region()));
    value.write('0000000000000999', 4);
    await scene.cache.set(scene.keys.document(region()), value);
    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    expect((await inCache(region()))?.version).toBe(version);
  });
});

describe('another organization’s document', () => {
  it('is a miss under this organization’s key, is counted, and is replaced', async () => {
    const [a, b] = [scene.sample.a, scene.sample.b].map(
      (organizationId) => ({ kind: 'clusters', organizationId }) as const,
    );
    if (!a || !b) throw new Error('unreachable: there are two');
    await scene.cache.set(scene.keys.document(a), await good(b));
    const unusable: string[] = [];
    const reader = await scene.linkedReader({ onUnusable: (kind) => unusable.push(kind) });
    const { body } = await reader.clusters.clusters(scene.sample.a);
    expect([body.identity.includes('of B alone'), body.identity.includes('Ä’s')]).toEqual([false, true]);
    expect(unusable).toEqual(['clusters']);
    await until(async () => (await inCache(a))?.body.identity.includes('Ä’s'));
  });
});

describe('the region of a machine', () => {
  it('without a valid id is a miss and is replaced', async () => {
    const { small, region } = scene.sample;
    const key = scene.keys.machineRegions(small);
    for (const damaged of ['', 'x', '-1', '1.5', '99999999999', 'NaN']) {
      await scene.cache.hset(key, small, damaged);
      await using reader = await scene.linkedReader();
      expect((await reader.catalogue.machine(small))?.body.identity.includes('klein')).toBe(true);
      await until(async () => (await scene.cache.hget(key, String(small))) === String(region));
    }
  });
});

it('a token whose value has no record of a token is an unusable value, also with its checksum', async () => {
  const name = { kind: 'token', hash: hashToken(token) } as const;
  const content = (await loadContent(scene.sql, name)) ?? expect.unreachable('there is no such token');
  const granted = await scene.reader().tokens.verify(token);
  for (const body of ['{}', 'null', '[]']) {
    await scene.cache.set(
      scene.keys.document(name),
      await encodeDocument({ ...content, body: Buffer.from(body) }),
    );
    const unusable: string[] = [];
    await using reader = await linkedWithoutRead({ onUnusable: (kind) => unusable.push(kind) });
    expect(await reader.tokens.verify(token), body).toEqual(granted);
    expect(unusable, body).toEqual(['token']);
  }
});
