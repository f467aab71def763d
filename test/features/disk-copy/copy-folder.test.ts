/** The files of a disk copy: which documents they return, which they refuse, and how damage is handled. */
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CopyFolder, copyFolder } from '../../../src/features/disk-copy/copy-folder.ts';
import { DamagedFile } from '../../../src/features/disk-copy/files.ts';
import { regionContent } from '../../../src/snapshot/document/build.ts';
import { decodeDocument, encodeDocument } from '../../../src/snapshot/document/format.ts';

const MB = 1_000_000;
const HOUR = 3_600_000;
const LIMITS = { bytes: 64 * MB, staleLimitMs: 60_000, tokenStaleLimitMs: 10_000 };
const LINEAGE = '5f0c2f8e-0000-4000-8000-000000000001';
const NOW = 1_800_000_000_000;
const STAMPS = new Map([['hetzner/7', 'catalogue 2026-01-02T00:00:00Z']]);
const TOKEN = `token:${'ab'.repeat(32)}`;

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fleetbook-copy-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function open(limits = LIMITS): Promise<CopyFolder> {
  const copy = new CopyFolder(folder, limits);
  await copy.claim(LINEAGE, 1);
  return copy;
}

/** Writes a document as a reader does. */
function write(copy: CopyFolder, id: string, version: number, value: Buffer, readAt = NOW): Promise<boolean> {
  return copy.write({ lineage: LINEAGE, id, version, stretch: 'run-1', readAt }, value);
}

function region(version: number, machines = 1, name = 'm'): Promise<Buffer> {
  const head = { id: 7, code: 'fsn1', name: 'Falkenstein', version, provider: { id: 5, name: 'Hetzner' } };
  const rows = Array.from({ length: machines }, (_, i) => {
    return { id: 100 + i, name, ram: 4, cpu: 2, price: 0.001, ramUnit: 'Decimal' as const };
  });
  return encodeDocument(regionContent(head, rows, { sources: ['hetzner/7'], currency: 'USD' }));
}

/** Confirms a stretch at NOW, unless a time is given. */
function confirm(copy: CopyFolder, stretch: string, { at = NOW, lineage = LINEAGE, stamps = STAMPS } = {}) {
  return copy.confirm({ lineage, stretch, at, stamps: [...stamps] });
}

const read = (copy: CopyFolder, id = 'region:7') => copy.read(LINEAGE, id);
const names = () => readdirSync(copyFolder(folder));
const path = (name: string) => join(copyFolder(folder), name);

/** Tidies the folder, and returns how many documents it still has. */
async function documentsAfter(copy: CopyFolder, now: number): Promise<number> {
  await copy.tidy(now);
  return names().filter((name) => !/^(lineage|confirmed-|revoked-|tmp-)/.test(name)).length;
}

describe('a stored document', () => {
  it('is read byte for byte, also by another process', async () => {
    const value = await region(3, 50);
    const copy = await open();
    await write(copy, 'region:7', 3, value);
    await confirm(copy, 'run-1');
    const other = await open();
    expect(await read(other)).toEqual({ version: 3, value, knownAt: NOW, asOf: undefined, stamps: STAMPS });
    expect(decodeDocument({ kind: 'region', regionId: 7 }, value)?.version).toBe(3);
    expect(await other.regions()).toEqual([7]);
  });

  it('has the time of its read, and only the stamps of its stretch', async () => {
    const copy = await open();
    const asOf = '2026-01-01T00:00:00Z';
    const head = { lineage: LINEAGE, id: 'region:7', version: 3, stretch: 'run-1', readAt: NOW, asOf };
    await copy.write(head, await region(3));
    await confirm(copy, 'run-2');
    await confirm(copy, 'run-1', { lineage: 'other' });
    expect(await read(copy)).toMatchObject({ asOf, stamps: new Map() });
    // The file of one stretch under the name of another.
    renameSync(path('confirmed-run-2'), path('confirmed-run-1'));
    expect(await read(copy)).toMatchObject({ asOf, stamps: new Map() });
    await confirm(copy, 'run-1');
    expect(await read(copy)).toMatchObject({ asOf, stamps: STAMPS });
  });

  it('never becomes older, in any order of the processes’ writes', async () => {
    const [a, b] = [await open(), await open()];
    await write(a, 'region:7', 4, await region(4));
    await write(b, 'region:7', 3, await region(3), NOW + 10);
    expect((await read(b))?.version).toBe(4);
    expect(await a.versionOf(LINEAGE, 'region:7')).toBe(4);
  });

  it('is removed only for a newer version', async () => {
    const [a, b] = [await open(), await open()];
    await write(a, 'region:7', 3, await region(3));
    await b.removeOlder(LINEAGE, 'region:7', 3);
    expect((await read(a))?.version).toBe(3);
    await b.removeOlder(LINEAGE, 'region:7', 4);
    expect(await read(a)).toBeUndefined();
  });

  it('of a token never returns after its revocation, not even by a late write of another process', async () => {
    const [a, b] = [await open(), await open()];
    const value = await region(1);
    await write(a, TOKEN, 1, value);
    a.revoke(LINEAGE, TOKEN, 3);
    expect(await read(b, TOKEN)).toBeUndefined();
    await write(b, TOKEN, 2, value, NOW + 10);
    expect(await read(b, TOKEN)).toBeUndefined();
    b.revoke(LINEAGE, TOKEN, 2);
    expect(await read(a, TOKEN)).toBeUndefined();
    expect(await a.versionOf(LINEAGE, TOKEN)).toBe(3);
    await write(a, TOKEN, 3, value);
    expect((await read(b, TOKEN))?.version).toBe(3);
  });

  it('of a token is rejected if the tombstone is truncated or damaged', async () => {
    const copy = await open();
    await write(copy, TOKEN, 5, await region(5));
    const [, hash] = TOKEN.split(':');
    copy.revoke(LINEAGE, TOKEN, 2);
    const whole = readFileSync(path(`revoked-${hash}`), 'utf8');
    for (const text of [
      '',
      whole.slice(0, -1),
      whole.slice(0, 20),
      whole.replace('"version":2', '"version":1'),
    ]) {
      writeFileSync(path(`revoked-${hash}`), text);
      expect([text, await read(copy, TOKEN)]).toEqual([text, undefined]);
    }
    writeFileSync(path(`revoked-${hash}`), whole);
    expect((await read(copy, TOKEN))?.version).toBe(5);
  });

  it('is valid until its read, or until the last confirmation of its stretch', async () => {
    const copy = await open();
    await write(copy, 'region:7', 3, await region(3));
    await confirm(copy, 'run-1', { at: NOW + 30_000 });
    expect((await read(copy))?.knownAt).toBe(NOW + 30_000);
    await confirm(copy, 'run-2', { at: NOW + 80_000 });
    await confirm(copy, 'other-1', { at: NOW + 80_000 });
    await confirm(copy, 'run-1', { at: NOW + 80_000, lineage: 'other' });
    expect((await read(copy))?.knownAt).toBe(NOW);
    await write(copy, 'region:7', 3, await region(3), NOW + 70_000);
    expect((await read(copy))?.knownAt).toBe(NOW + 70_000);
    // The file of one stretch under the name of another.
    await confirm(copy, 'run-2', { at: NOW + 90_000 });
    renameSync(path('confirmed-run-2'), path('confirmed-run-1'));
    expect((await read(copy))?.knownAt).toBe(NOW + 70_000);
  });

  it('belongs to one lineage, which PostgreSQL can replace and a cache alone cannot', async () => {
    const copy = await open();
    await write(copy, 'region:7', 3, await region(3));
    expect(await copy.claim('other', 0)).toBe('refused');
    expect(await copy.read('other', 'region:7')).toBeUndefined();
    expect((await read(copy))?.version).toBe(3);
    expect(await copy.claim('other', 2)).toBe('begun');
    // A process without the new lineage.
    expect(await copy.claim(LINEAGE, 1)).toBe('refused');
    expect(await read(copy)).toBeUndefined();
    expect((await copy.owner())?.lineage).toBe('other');
  });

  it('stays with the lineage that PostgreSQL named last', async () => {
    const copy = await open();
    expect(await copy.claim(LINEAGE, 5)).toBe('owned');
    expect(await copy.claim('other', 4)).toBe('refused');
    expect(await copy.claim('other', 6)).toBe('begun');
  });

  it('is removed an hour after its limit, tokens sooner', async () => {
    const copy = await open();
    const value = await region(3);
    await write(copy, 'region:7', 3, value);
    await write(copy, TOKEN, 1, value);
    await write(copy, 'clusters:1', 1, value, NOW - HOUR - 60_001);
    expect(await documentsAfter(copy, NOW)).toBe(2);
    expect(await documentsAfter(copy, NOW + HOUR + 10_001)).toBe(1);
    expect(await documentsAfter(copy, NOW + HOUR + 60_000)).toBe(1);
    await confirm(copy, 'run-1', { at: NOW + 10 });
    utimesSync(path('confirmed-run-1'), (NOW + 10) / 1000, (NOW + 10) / 1000);
    expect(await documentsAfter(copy, NOW + HOUR + 60_010)).toBe(1);
    expect(await documentsAfter(copy, NOW + HOUR + 60_011)).toBe(0);
  });

  it('leaves tombstones, confirmations and unfinished writes until they are too old', async () => {
    const copy = await open();
    const now = Date.now();
    copy.revoke(LINEAGE, TOKEN, 2);
    await confirm(copy, 'run-1', { at: now });
    writeFileSync(path('tmp-killed'), 'half');
    await copy.tidy(now + HOUR);
    expect(names()).toHaveLength(4);
    const longAgo = new Date(now - 2 * HOUR);
    for (const name of names()) utimesSync(path(name), longAgo, longAgo);
    await copy.tidy(now);
    expect(names()).toEqual(['lineage']);
  });
});

describe('the size limit', () => {
  it('holds for all files together: old lists are removed, tokens and the list of providers stay', async () => {
    const copy = await open({ ...LIMITS, bytes: 16 * MB });
    const value = await region(1, 1, 'x'.repeat(90_000));
    const age = (name: string, i: number) => utimesSync(path(name), i, i);
    const store = async (id: string, i: number) => {
      if (copy.isTidyDue(NOW)) await copy.tidy(NOW);
      expect(await write(copy, id, 1, value)).toBe(true);
      age(id.replace(':', '-'), NOW / 1000 + i);
    };
    await store('providers', 0);
    await store(TOKEN, 0);
    for (let i = 0; i < 400; i++) {
      await store(`clusters:${i}`, i);
      const sizes = names().map((name) => statSync(path(name)).size);
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(16 * MB);
    }
    expect((await read(copy, 'providers'))?.version).toBe(1);
    expect((await read(copy, TOKEN))?.version).toBe(1);
    expect((await read(copy, 'clusters:399'))?.version).toBe(1);
    expect(await read(copy, 'clusters:0')).toBeUndefined();
    expect(await documentsAfter(copy, NOW)).toBeGreaterThan(50);
  });

  it('rejects further documents if tokens alone fill the folder', async () => {
    const copy = await open({ ...LIMITS, bytes: 16 * MB });
    const value = await region(1, 1, 'x'.repeat(90_000));
    let written = 0;
    while (written < 400 && (await write(copy, `token:${written}`, 1, value))) {
      written += 1;
      if (copy.isTidyDue(NOW)) await copy.tidy(NOW);
    }
    expect(written).toBeGreaterThan(100);
    expect(written).toBeLessThan(400);
    await copy.tidy(NOW);
    expect(await write(copy, 'token:400', 1, value)).toBe(false);
    expect(await read(copy, 'token:400')).toBeUndefined();
    expect((await read(copy, 'token:0'))?.version).toBe(1);
    // A document that is too large has no room in an empty folder either.
    const empty = new CopyFolder(join(folder, 'empty'), { ...LIMITS, bytes: 100_000 });
    await empty.claim(LINEAGE, 1);
    expect(await write(empty, 'region:7', 1, value)).toBe(false);
  });

  it('files are readable by their user only, and no file name is a secret', async () => {
    const copy = await open();
    await write(copy, 'region:7', 3, await region(3));
    await write(copy, TOKEN, 1, await region(3));
    await confirm(copy, 'run-1');
    copy.revoke(LINEAGE, TOKEN, 2);
    expect(statSync(copyFolder(folder)).mode & 0o777).toBe(0o700);
    for (const name of names()) expect([name, statSync(path(name)).mode & 0o777]).toEqual([name, 0o600]);
    const [, hash] = TOKEN.split(':');
    expect(names().sort()).toEqual(
      ['confirmed-run-1', 'lineage', 'region-7', `revoked-${hash}`, `token-${hash}`].sort(),
    );
  });
});

describe('damaged files', () => {
  it('the checksum of a document reveals its damage, and other documents stay', async () => {
    const copy = await open();
    const value = await region(3, 200);
    await write(copy, 'region:7', 3, value);
    await write(copy, 'region:8', 1, value);
    const bytes = readFileSync(path('region-7'));
    bytes[bytes.indexOf('Falkenstein')] = 'f'.charCodeAt(0);
    writeFileSync(path('region-7'), bytes);
    const damaged = (await read(copy))?.value ?? expect.unreachable('its first line is intact');
    expect(decodeDocument({ kind: 'region', regionId: 7 }, damaged)).toBeUndefined();
    expect((await read(copy, 'region:8'))?.value).toEqual(value);
  });

  it.each(['"version":2', '"readAt":1800000000001', '"stretch":"run-9"'])(
    'a first line changed to %s is a miss, and its file is removed',
    async (changed) => {
      const copy = await open();
      await write(copy, 'region:7', 3, await region(3));
      const [field = ''] = changed.split(':');
      const text = readFileSync(path('region-7'), 'latin1');
      writeFileSync(path('region-7'), text.replace(new RegExp(`${field}:[^,}]+`), changed), 'latin1');
      await expect(read(copy)).rejects.toThrow(DamagedFile);
      expect(await read(copy)).toBeUndefined();
      expect(names()).toEqual(['lineage']);
    },
  );

  it.each([
    ['is cut', (bytes: Buffer) => bytes.subarray(0, 60)],
    ['is truncated', () => Buffer.alloc(0)],
    ['is something else', () => Buffer.from('#!/bin/sh\n'.repeat(2000))],
    ['is zeros', (bytes: Buffer) => Buffer.alloc(bytes.length)],
  ])('a file that %s is reported as damaged, and removed for a new one', async (_, damage) => {
    const copy = await open();
    const value = await region(3, 300);
    await write(copy, 'region:7', 3, value);
    writeFileSync(path('region-7'), damage(readFileSync(path('region-7'))));
    const next = await open();
    await expect(read(next)).rejects.toThrow(DamagedFile);
    expect(await next.versionOf(LINEAGE, 'region:7')).toBe(0);
    await write(next, 'region:7', 4, value);
    expect((await read(next))?.version).toBe(4);
  });

  it('a file with the name of another document is a miss', async () => {
    const copy = await open();
    await write(copy, 'clusters:1', 1, await region(3));
    renameSync(path('clusters-1'), path('clusters-2'));
    await expect(read(copy, 'clusters:2')).rejects.toThrow(DamagedFile);
  });

  it('after random damage a read returns what was written or nothing, and never ends the process', async () => {
    const value = await region(3, 300);
    for (let round = 0; round < 300; round++) {
      const copy = await open();
      await write(copy, 'region:7', 3, value);
      const bytes = readFileSync(path('region-7'));
      // The first line is short. Damage it as often as the rest.
      const within = round % 2 === 0 ? 200 : bytes.length;
      for (let i = 0; i < 1 + (round % 30); i++)
        bytes[Math.floor(Math.random() * within)] = Math.floor(Math.random() * 256);
      writeFileSync(path('region-7'), bytes);
      try {
        const found = await read(copy);
        if (found && !found.value.equals(value))
          expect(decodeDocument({ kind: 'region', regionId: 7 }, found.value)).toBeUndefined();
        if (found) expect([found.version, found.knownAt]).toEqual([3, NOW]);
      } catch (error) {
        expect(error).toBeInstanceOf(DamagedFile);
      }
      await copy.remove('region:7');
    }
  });

  it('the first claim removes files of other formats, such as the SQLite files of earlier releases', async () => {
    mkdirSync(join(folder, 'fleetbook-copy-1'));
    writeFileSync(join(folder, 'fleetbook-copy-1', '1800000000000.sqlite'), 'of an earlier release');
    mkdirSync(join(folder, 'another folder'));
    await open();
    expect(readdirSync(folder).sort()).toEqual(['another folder', 'fleetbook-copy-2']);
    // An earlier release ran for a while, e.g. after a rollback.
    mkdirSync(join(folder, 'fleetbook-copy-1'));
    await open();
    expect(readdirSync(folder).sort()).toEqual(['another folder', 'fleetbook-copy-2']);
  });

  it('a copy that one process has begun again begins again for the others too, once', async () => {
    const [a, b] = [await open(), await open()];
    await write(b, 'region:7', 3, await region(3));
    rmSync(copyFolder(folder), { recursive: true });
    expect(await a.claim(LINEAGE, 1)).toBe('begun');
    // Otherwise this process would believe that its document is on disk.
    expect(await b.claim(LINEAGE, 1)).toBe('begun');
    for (const copy of [a, b]) expect(await copy.claim(LINEAGE, 1)).toBe('owned');
    expect(await (await open()).claim(LINEAGE, 2)).toBe('owned');
    expect(await a.claim(LINEAGE, 1)).toBe('owned');
  });

  it('a removed copy, or one without a readable owner, begins again', async () => {
    const copy = await open();
    await write(copy, 'region:7', 3, await region(3));
    rmSync(copyFolder(folder), { recursive: true });
    expect(await copy.claim(LINEAGE, 1)).toBe('begun');
    expect(await read(copy)).toBeUndefined();
    await write(copy, 'region:7', 3, await region(3));
    writeFileSync(path('lineage'), 'damaged');
    expect(await copy.claim(LINEAGE, 0)).toBe('begun');
    expect(await read(copy)).toBeUndefined();
    expect(await copy.claim(LINEAGE, 0)).toBe('owned');
  });
});
