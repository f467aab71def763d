/** Readers that start with only the disk copy of an earlier reader, while PostgreSQL and Redis are down. */
import { existsSync, readdirSync, renameSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../../src/db/tokens.ts';
import { hashToken } from '../../../src/domain/token.ts';
import { Unavailable } from '../../../src/snapshot/document/answer.ts';
import { documentId } from '../../../src/snapshot/document/keys.ts';
import { addOrganization, reprice, verify } from '../../snapshot/rows.ts';
import type { TestReader } from '../../snapshot/scene.ts';
import { run } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';
import { diskScene, MINUTE } from './disk-scene.ts';

const disk = diskScene();
const { scene, clock, open, served, machines, seen, everythingDown, fileOf } = disk;

describe('with everything down', () => {
  it('a new reader serves the same answers as before, byte for byte, as tier disk', async () => {
    const before = await served();
    const expected = [
      await seen(machines(before)),
      await seen(before.catalogue.machine(scene.sample.big) as never),
      await seen(before.catalogue.providers()),
      await seen(before.clusters.clusters(scene.sample.a)),
    ];
    expect(expected[0]?.asOf).toBe('2026-01-02T03:04:05.678Z');
    expect(expected[0]?.gzip).toBeDefined();
    await everythingDown();
    const reader = open();
    for (const round of ['first', 'second']) {
      expect([round, (await machines(reader)).tier]).toEqual([round, 'disk']);
      expect([
        await seen(machines(reader)),
        await seen(reader.catalogue.machine(scene.sample.big) as never),
        await seen(reader.catalogue.providers()),
        await seen(reader.clusters.clusters(scene.sample.a)),
      ]).toEqual(expected);
    }
    expect(await reader.tokens.verify(disk.token)).toEqual({
      tokenId: disk.tokenId,
      organizationId: scene.sample.a,
      scopes: ['machines:read', 'clusters:read'],
    });
    expect((await reader.clusters.cluster(scene.sample.a, 'cluster-test'))?.tier).toBe('disk');
  });

  it('a new reader does not state the time of a run that was stored after the read of its document', async () => {
    await disk.cache.refuse();
    const before = open();
    const { asOf } = await machines(before);
    await reprice(scene.sql, scene.sample.small, '0.75');
    await verify(scene.sql, 'cloud', '2026-01-03T00:00:00Z');
    clock.forward(1001);
    await before.clusters.clusters(scene.sample.a);
    const known = async () => (await before.documents.freshness.begin()).postgres.get('cloud');
    await until(async () => (await known()) === 'catalogue 2026-01-03T00:00:00.000Z');
    await before.copy?.flush();
    await everythingDown();
    expect(asOf).toBe('2026-01-02T03:04:05.678Z');
    expect(await machines(open())).toMatchObject({ tier: 'disk', asOf });
  });

  it('a new reader states the last times that messages confirmed', async () => {
    const before = await served();
    await verify(scene.sql, 'cloud', '2026-01-03T00:00:00Z');
    await scene.publisher.publishDirty();
    const asOf = '2026-01-03T00:00:00.000Z';
    // A poll that began before the publication does not confirm its time.
    await until(async () => {
      await before.copy?.flush();
      return (await before.copy?.read({ kind: 'region', regionId: scene.sample.region }))?.asOf === asOf;
    });
    await everythingDown();
    expect(await machines(open())).toMatchObject({ tier: 'disk', asOf });
  });

  it('hanging servers delay no answer once the reader has detected them', async () => {
    await served();
    disk.database.hang();
    disk.cache.hang();
    const reader = open({ postgresDeadlineMs: 1500 });
    const timedRead = async () => {
      const begun = performance.now();
      const { tier } = await machines(reader);
      return { tier, isLate: performance.now() - begun > 200 };
    };
    await until(async () => !(await timedRead()).isLate);
    const late: number[] = [];
    const begun = performance.now();
    await until(async () => {
      const { tier, isLate } = await timedRead();
      expect(tier).toBe('disk');
      if (isLate) late.push(performance.now() - begun);
      return performance.now() - begun > 5000;
    });
    // A busy machine may be late as well.
    expect(late.length, `late after ${late.map(Math.round).join(', ')} ms`).toBeLessThan(4);
  });

  it('every machine of a served list is found, also one that was never requested', async () => {
    await served();
    await everythingDown();
    const reader = open();
    expect((await reader.catalogue.machine(scene.sample.small))?.tier).toBe('disk');
  });

  it('a document that was never served is unavailable, not missing', async () => {
    await served();
    const other = await addOrganization(scene.sql, 'other');
    await everythingDown();
    const reader = open();
    await expect(reader.clusters.clusters(other)).rejects.toThrow(Unavailable);
    await expect(reader.clusters.clusters(scene.sample.b)).rejects.toThrow(Unavailable);
    await expect(Promise.resolve(reader.catalogue.machine(4_000_000))).rejects.toThrow(Unavailable);
  });

  it('without a copy reads are unavailable', async () => {
    await served();
    await everythingDown();
    const reader = open({ snapshotDir: undefined });
    await expect(Promise.resolve(machines(reader))).rejects.toThrow(Unavailable);
  });

  it('a document expires STALE_LIMIT after its last confirmation', async () => {
    await served({ staleLimitMs: 10 * MINUTE });
    await everythingDown();
    clock.forward(9 * MINUTE);
    expect((await machines(open({ staleLimitMs: 10 * MINUTE }))).tier).toBe('disk');
    clock.forward(MINUTE + 5000);
    const late = open({ staleLimitMs: 10 * MINUTE });
    await expect(Promise.resolve(machines(late))).rejects.toThrow(Unavailable);
  });

  it('STALE_LIMIT also ends a document that a reader loaded from disk into memory', async () => {
    await served({ staleLimitMs: 10 * MINUTE });
    await everythingDown();
    const reader = open({ staleLimitMs: 10 * MINUTE });
    expect((await machines(reader)).tier).toBe('disk');
    clock.forward(11 * MINUTE);
    await expect(Promise.resolve(machines(reader))).rejects.toThrow(Unavailable);
  });

  it('the link confirms documents that are not read again', async () => {
    const reader = await served({ staleLimitMs: 10 * MINUTE });
    clock.forward(30 * MINUTE);
    const since = clock.now();
    await until(() => reader.link.confirmedAt(reader.link.epoch) >= since);
    await reader.copy?.flush();
    await everythingDown();
    expect((await machines(open({ staleLimitMs: 10 * MINUTE }))).tier).toBe('disk');
  });
});

describe('tokens', () => {
  it('are accepted only for TOKEN_STALE_LIMIT', async () => {
    await served();
    await everythingDown();
    clock.forward(14 * MINUTE);
    expect(await open().tokens.verify(disk.token)).toMatchObject({ tokenId: disk.tokenId });
    clock.forward(MINUTE + 5000);
    await expect(Promise.resolve(open().tokens.verify(disk.token))).rejects.toThrow(Unavailable);
  });

  it('a revocation that the reader answered survives a restart with everything down', async () => {
    const reader = await served();
    await revokeToken(scene.store.db, disk.tokenId);
    await scene.publisher.publishDirty();
    await until(async () => (await reader.tokens.verify(disk.token)) === undefined);
    // There is no flush: the answer alone wrote the revocation.
    await everythingDown();
    const restarted = open();
    expect(await answered(restarted)).not.toBe('accepted');
    await reader.copy?.flush();
    expect(await answered(open())).toBe('refused');
  });

  it('a revocation that the reader only received survives as well', async () => {
    const reader = await served();
    await revokeToken(scene.store.db, disk.tokenId);
    await scene.publisher.publishDirty();
    const name = { kind: 'token', hash: hashToken(disk.token) } as const;
    await until(() => reader.documents.getFresh(name) === undefined);
    await until(async () => (await reader.copy?.read(name)) === undefined);
    await everythingDown();
    expect(await answered(open())).toBe('unavailable');
  });

  it('a revocation is on disk before anything else happens', async () => {
    const { copy } = await served();
    const hash = hashToken(disk.token);
    copy?.onPublished(`token:${hash}`, 2);
    expect(existsSync(fileOf(`revoked:${hash}`))).toBe(true);
    expect(await copy?.read({ kind: 'token', hash })).toBeUndefined();
  });

  it('a message without a document’s id touches no file', async () => {
    const { copy } = await served();
    const files = () => readdirSync(dirname(fileOf('providers'))).sort();
    const before = files();
    for (const id of ['token:../providers', 'region:../../x', 'token:', 'lineage', ''])
      copy?.onPublished(id, 9);
    await copy?.flush();
    expect(files()).toEqual(before);
  });

  it('an expired token stays expired', async () => {
    const scopes = ['machines:read'] as const;
    const expiresAt = new Date(clock.now() + 5 * MINUTE);
    const { token: short } = await createToken(scene.store.db, {
      organizationId: scene.sample.a,
      scopes,
      expiresAt,
    });
    const reader = await served();
    expect(await reader.tokens.verify(short)).toBeDefined();
    await reader.copy?.flush();
    await everythingDown();
    expect(await open().tokens.verify(short)).toBeDefined();
    clock.forward(6 * MINUTE);
    expect(await open().tokens.verify(short)).toBeUndefined();
    expect(await open().tokens.verify(disk.token)).toBeDefined();
  });

  it('a token that is no longer in PostgreSQL is removed', async () => {
    const reader = await served();
    await disk.cache.refuse();
    await until(() => !reader.link.linked);
    await run(scene.db.url, `delete from tokens where id = ${disk.tokenId}`);
    clock.forward(11_000);
    await until(async () => (await reader.tokens.verify(disk.token)) === undefined);
    await everythingDown();
    expect(await answered(open())).toBe('unavailable');
  });

  async function answered(reader: TestReader): Promise<'accepted' | 'refused' | 'unavailable'> {
    try {
      return (await reader.tokens.verify(disk.token)) ? 'accepted' : 'refused';
    } catch (error) {
      if (error instanceof Unavailable) return 'unavailable';
      throw error;
    }
  }
});

it('a price book that was replaced is removed', async () => {
  const { copy, documents } = await served();
  const name = { kind: 'price-book', organizationId: scene.sample.a } as const;
  const { document } = await documents.get(name);
  await copy?.flush();
  expect((await copy?.read(name))?.document?.version).toBe(document?.version);
  copy?.onPublished(documentId(name), (document?.version ?? 0) + 1);
  await copy?.flush();
  expect(await copy?.read(name)).toBeUndefined();
});

it('a file with the name of another organization is a miss', async () => {
  const reader = await served();
  const other = await addOrganization(scene.sql, 'other');
  expect((await reader.clusters.clusters(other)).body.identity.toString()).toBe('[]');
  await reader.copy?.flush();
  // A running reader would write its memory to disk again.
  await reader[Symbol.asyncDispose]();
  await everythingDown();
  const [own, others] = [fileOf(`clusters:${scene.sample.a}`), fileOf(`clusters:${other}`)];
  renameSync(own, `${own}-swapped`);
  renameSync(others, own);
  renameSync(`${own}-swapped`, others);
  const restarted = open();
  for (const organization of [scene.sample.a, other])
    await expect(Promise.resolve(restarted.clusters.clusters(organization))).rejects.toThrow(Unavailable);
  const { values = [] } = (await restarted.copy?.health.failures.get()) ?? {};
  expect(values.find(({ labels }) => labels.reason === 'damaged')?.value).toBe(2);
});
