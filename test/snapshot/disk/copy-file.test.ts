/** The file of a disk copy: what it gives, what it refuses, and what becomes of files that are not as they were written. */
import { mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CopyFile } from '../../../src/snapshot/disk/copy-file.ts';
import { reasonOf } from '../../../src/snapshot/disk/failures.ts';
import { copyFolder } from '../../../src/snapshot/disk/formats.ts';
import type { Batch } from '../../../src/snapshot/disk/messages.ts';
import { regionContent } from '../../../src/snapshot/document/build.ts';
import { decodeDocument, encodeDocument } from '../../../src/snapshot/document/format.ts';

const MB = 1_000_000;
const HOUR = 3_600_000;
const LIMITS = { bytes: 64 * MB, staleLimitMs: 60_000, tokenStaleLimitMs: 10_000 };
const LINEAGE = '5f0c2f8e-0000-4000-8000-000000000001';
const NOW = 1_800_000_000_000;

let folder: string;
const files: CopyFile[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fleetbook-copy-'));
});
afterEach(async () => {
  for (const file of files.splice(0)) file.close();
  await rm(folder, { recursive: true, force: true });
});

function open(limits = LIMITS): CopyFile {
  const file = new CopyFile(folder, limits);
  files.push(file);
  return file;
}

function batch(parts: Partial<Batch>): Batch {
  const none = { floors: [], documents: [], stamps: [], confirmed: undefined };
  return { lineage: LINEAGE, lineageAt: 1, now: NOW, ...none, ...parts };
}

/** A row as a reader hands it over. */
function row(id: string, version: number, value: Uint8Array | undefined, readAt = NOW) {
  return { id, version, run: 'run', epoch: 1, readAt, value };
}

function region(version: number, machines = 1, name = 'm'): Promise<Buffer> {
  const head = { id: 7, code: 'fsn1', name: 'Falkenstein', version, provider: { id: 5, name: 'Hetzner' } };
  const rows = Array.from({ length: machines }, (_, i) => {
    return { id: 100 + i, name, ram: 4, cpu: 2, price: 0.001, ramUnit: 'Decimal' as const };
  });
  return encodeDocument(regionContent(head, rows, { sources: ['hetzner/7'], currency: 'USD' }));
}

const read = (file: CopyFile, id = 'region:7', now = NOW) =>
  file.read(
    LINEAGE,
    id,
    now - (id.startsWith('token:') ? LIMITS.tokenStaleLimitMs : LIMITS.staleLimitMs),
    now,
  );

const databaseFiles = () => readdirSync(copyFolder(folder)).filter((name) => name.endsWith('.sqlite'));
const onlyFile = () => join(copyFolder(folder), databaseFiles()[0] ?? '');

describe('what is kept', () => {
  it('is given again byte for byte, by another process too, and with the regions of its machines', async () => {
    const value = await region(3, 50);
    open().write(
      batch({
        documents: [row('region:7', 3, value)],
        stamps: [['hetzner', 'catalogue 2026-01-01T00:00:00Z']],
      }),
    );
    const other = open();
    expect(Buffer.from(read(other)?.value ?? [])).toEqual(value);
    expect(
      decodeDocument({ kind: 'region', regionId: 7 }, Buffer.from(read(other)?.value ?? []))?.version,
    ).toBe(3);
    expect(other.regionOfMachine(LINEAGE, 149)).toBe(7);
    expect(other.regionOfMachine(LINEAGE, 150)).toBeUndefined();
    expect(other.stamps(LINEAGE)).toEqual([['hetzner', 'catalogue 2026-01-01T00:00:00Z']]);
  });

  it('never becomes older, whichever process writes last', async () => {
    const [a, b] = [open(), open()];
    a.write(batch({ documents: [row('region:7', 4, await region(4))] }));
    b.write(batch({ documents: [row('region:7', 3, await region(3), NOW + 10)] }));
    expect(read(b)?.version).toBe(4);
  });

  it('is put out by a newer version that was only heard of, and stays so against a late write', async () => {
    const [a, b] = [open(), open()];
    const value = await region(3);
    a.write(batch({ documents: [row('region:7', 3, value)] }));
    b.write(batch({ floors: [['region:7', 4]] }));
    expect(read(a)).toBeUndefined();
    a.write(batch({ documents: [row('region:7', 3, value, NOW + 10)] }));
    expect(read(b)).toBeUndefined();
    expect(b.versions(LINEAGE, 'region:7')).toEqual({ newest: 4, held: 0 });
    a.write(batch({ documents: [row('region:7', 4, await region(4))] }));
    expect(read(b)?.version).toBe(4);
    expect(b.versions(LINEAGE, 'region:7')).toEqual({ newest: 4, held: 4 });
  });

  it('is given as long as it is known: since it was read, or its epoch was confirmed', async () => {
    const file = open();
    file.write(batch({ documents: [row('region:7', 3, await region(3))] }));
    expect(read(file, 'region:7', NOW + 60_000)?.knownAt).toBe(NOW);
    expect(read(file, 'region:7', NOW + 60_001)).toBeUndefined();
    file.write(batch({ confirmed: { run: 'run', epoch: 1, at: NOW + 30_000 } }));
    expect(read(file, 'region:7', NOW + 90_000)?.knownAt).toBe(NOW + 30_000);
    expect(read(file, 'region:7', NOW + 90_001)).toBeUndefined();
    file.write(batch({ confirmed: { run: 'run', epoch: 2, at: NOW + 80_000 } }));
    file.write(batch({ confirmed: { run: 'other', epoch: 1, at: NOW + 80_000 } }));
    expect(read(file, 'region:7', NOW + 90_001)).toBeUndefined();
    file.write(batch({ documents: [row('region:7', 3, undefined, NOW + 70_000)] }));
    expect(read(file, 'region:7', NOW + 130_000)?.knownAt).toBe(NOW + 70_000);
  });

  it('is not given while the clock says that it is from the future', async () => {
    const file = open();
    file.write(batch({ documents: [row('region:7', 3, await region(3), NOW + 3_600_000)] }));
    expect(read(file)).toBeUndefined();
  });

  it('is of one lineage: PostgreSQL ends it, a cache alone does not', async () => {
    const file = open();
    file.write(batch({ documents: [row('region:7', 3, await region(3))] }));
    expect(file.write(batch({ lineage: 'other', lineageAt: 0 }))).toBe(false);
    expect(file.read('other', 'region:7', 0, NOW)).toBeUndefined();
    expect(read(file)?.version).toBe(3);
    expect(file.write(batch({ lineage: 'other', lineageAt: 2 }))).toBe(true);
    // By a process that has not heard of it yet.
    expect(file.write(batch({ documents: [row('region:7', 3, await region(3))] }))).toBe(false);
    expect(read(file)).toBeUndefined();
    expect(file.lineage()).toBe('other');
  });

  it('goes an hour after it got too old for any answer, tokens sooner', async () => {
    const file = open();
    const value = await region(3);
    const documents = [
      row('region:7', 3, value),
      row('token:aa', 1, value),
      row('clusters:1', 1, value, NOW - HOUR - 60_001),
    ];
    file.write(batch({ documents }));
    file.prune(NOW);
    expect(file.sizes().documents).toBe(2);
    file.prune(NOW + HOUR + 10_001);
    expect(file.sizes().documents).toBe(1);
    expect(file.regionOfMachine(LINEAGE, 100)).toBe(7);
    file.prune(NOW + HOUR + 60_001);
    expect(file.sizes().documents).toBe(0);
    expect(file.regionOfMachine(LINEAGE, 100)).toBeUndefined();
  });
});

describe('its room', () => {
  it('is bounded, all files together; lists make room, tokens and the list of providers stay', async () => {
    const file = open({ ...LIMITS, bytes: 16 * MB });
    const value = await region(1, 1, 'x'.repeat(90_000));
    file.write(batch({ documents: [row('providers', 1, value), row('token:aa', 1, value)] }));
    for (let i = 0; i < 400; i++) {
      file.write(batch({ documents: [row(`clusters:${i}`, 1, value, NOW + i)] }));
      const sizes = readdirSync(copyFolder(folder)).map(
        (name) => statSync(join(copyFolder(folder), name)).size,
      );
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(16 * MB);
    }
    expect(read(file, 'providers')?.version).toBe(1);
    expect(read(file, 'token:aa')?.version).toBe(1);
    expect(read(file, 'clusters:399')?.version).toBe(1);
    expect(read(file, 'clusters:0')).toBeUndefined();
    expect(file.sizes().documents).toBeGreaterThan(50);
  });

  it('that tokens alone have filled takes no more of them, and fails nobody', async () => {
    const file = open({ ...LIMITS, bytes: 16 * MB });
    const value = await region(1, 1, 'x'.repeat(90_000));
    for (let i = 0; i < 400; i++)
      expect(file.write(batch({ documents: [row(`token:${i}`, 1, value, NOW + i)] }))).toBe(true);
    expect(read(file, 'token:0')?.version).toBe(1);
    expect(read(file, 'token:399')).toBeUndefined();
  });

  it('is for nobody else on the machine', async () => {
    open().write(batch({ documents: [row('region:7', 3, await region(3))] }));
    expect(statSync(copyFolder(folder)).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(copyFolder(folder)))
      expect([name, statSync(join(copyFolder(folder), name)).mode & 0o777]).toEqual([name, 0o600]);
  });
});

describe('files that are not as they were written', () => {
  it('a damaged document is a miss and goes, or is found out by its own checksum; the others stay', async () => {
    const file = open();
    const value = await region(3, 200);
    file.write(batch({ documents: [row('region:7', 3, value), row('region:8', 1, value)] }));
    file.close();
    // One byte of a name inside the stored value.
    const bytes = readFileSync(onlyFile());
    const at = bytes.indexOf('Falkenstein', bytes.indexOf('FB1 '));
    bytes[at] = 'f'.charCodeAt(0);
    writeFileSync(onlyFile(), bytes);
    const values = ['region:7', 'region:8'].map((id) => Buffer.from(read(open(), id)?.value ?? []));
    const whole = values.filter((each) => each.equals(value));
    expect(whole).toHaveLength(1);
    for (const each of values)
      if (!each.equals(value)) expect(decodeDocument({ kind: 'region', regionId: 7 }, each)).toBeUndefined();
  });

  it('a row whose version, time or floor was changed is a miss, and is removed', async () => {
    const { DatabaseSync } = await import('node:sqlite');
    for (const change of ['version = 2, floor = 2', 'read_at = read_at + 1', 'epoch = 9', "run = 'x'"]) {
      const file = open();
      file.write(batch({ documents: [row('region:7', 3, await region(3))] }));
      expect(read(file)?.version).toBe(3);
      const foreign = new DatabaseSync(onlyFile());
      foreign.exec(`update documents set ${change}`);
      foreign.close();
      expect(() => read(file)).toThrow('damaged');
      expect(read(file)).toBeUndefined();
      file.drop();
    }
  });

  it.each([
    ['is cut', (bytes: Buffer) => bytes.subarray(0, 6000)],
    ['is something else', () => Buffer.from('#!/bin/sh\n'.repeat(2000))],
    ['is zeros', (bytes: Buffer) => Buffer.alloc(bytes.length)],
  ])('a file that %s is told as damaged, and removed for a new one', async (_, damage) => {
    const file = open();
    const value = await region(3, 300);
    file.write(batch({ documents: [row('region:7', 3, value)] }));
    file.close();
    writeFileSync(onlyFile(), damage(readFileSync(onlyFile())));
    const next = open();
    let reason: string | undefined;
    try {
      expect(read(next)).toBeUndefined();
    } catch (error) {
      reason = reasonOf(error);
      next.drop();
    }
    // An empty file of zeros is a new database to SQLite.
    if (_ !== 'is zeros') expect(reason).toBe('damaged');
    next.write(batch({ documents: [row('region:7', 4, value)] }));
    expect(read(next)?.version).toBe(4);
  });

  it('random damage gives what was written or nothing, and never ends the process', async () => {
    const value = await region(3, 300);
    const ids = Array.from({ length: 20 }, (_, i) => `clusters:${i}`);
    for (let round = 0; round < 60; round++) {
      const file = open();
      file.write(batch({ documents: ids.map((id) => row(id, 3, value)) }));
      file.close();
      const bytes = readFileSync(onlyFile());
      for (let i = 0; i < 1 + (round % 30); i++)
        bytes[Math.floor(Math.random() * bytes.length)] = Math.floor(Math.random() * 256);
      writeFileSync(onlyFile(), bytes);
      const damaged = open();
      for (const id of ids) {
        try {
          const found = read(damaged, id);
          if (found && !Buffer.from(found.value).equals(value))
            expect(decodeDocument({ kind: 'region', regionId: 7 }, Buffer.from(found.value))).toBeUndefined();
          if (found) expect(found.version).toBe(3);
        } catch (error) {
          expect(reasonOf(error)).toBe('damaged');
        }
      }
      damaged.drop();
    }
  });

  it('another format is not read; it is removed when nobody has written it for a day', async () => {
    const other = join(folder, 'fleetbook-copy-99');
    mkdirSync(other);
    writeFileSync(join(other, '1800000000000.sqlite'), 'of another release');
    open().write(batch({}));
    expect(readdirSync(folder).sort()).toEqual(['fleetbook-copy-1', 'fleetbook-copy-99']);
    const longAgo = new Date(Date.now() - 90_000_000);
    for (const path of [join(other, '1800000000000.sqlite'), other]) utimesSync(path, longAgo, longAgo);
    open().write(batch({}));
    expect(readdirSync(folder)).toEqual(['fleetbook-copy-1']);
  });

  it('a copy that another process removed is begun anew by all, in the same file', async () => {
    const [a, b] = [open(), open()];
    const value = await region(3);
    a.write(batch({ documents: [row('region:7', 3, value)] }));
    b.write(batch({}));
    expect(b.wasBegun).toBe(true);
    a.drop();
    expect(b.write(batch({ documents: [row('region:8', 1, value)] }))).toBe(true);
    expect(b.wasBegun).toBe(true);
    expect(b.wasBegun).toBe(false);
    expect(read(a, 'region:8')?.version).toBe(1);
    expect(read(a)).toBeUndefined();
    expect(databaseFiles()).toHaveLength(1);
  });
});
