import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { inspectConfig } from '../../../src/config/config.ts';
import { copyFolder } from '../../../src/features/disk-copy/copy-folder.ts';
import { checkDiskCopy, roomFinding } from '../../../src/features/disk-copy/doctor.ts';
import { findSetpriv } from '../../../src/processes/server-process.ts';

const folder = mkdtempDisposableSync(join(tmpdir(), 'fleetbook-doctor-'));
afterAll(() => folder.remove());

const check = (path: string) => checkDiskCopy(inspectConfig({ SNAPSHOT_DIR: path }));

describe('doctor checks SNAPSHOT_DIR', () => {
  it('and reports nothing if it is not set', async () => {
    expect(await checkDiskCopy(inspectConfig({}))).toEqual([]);
  });

  it('and reports the size of the copy', async () => {
    const path = join(folder.path, 'kept');
    mkdirSync(copyFolder(path), { recursive: true });
    writeFileSync(join(copyFolder(path), '1.sqlite'), Buffer.alloc(3_200_000));
    expect(await check(path)).toEqual([
      { check: 'copy on disk', verdict: 'ok', found: `${path} has 3 MB of at most 512 MB`, mend: null },
    ]);
  });

  it('which need not exist yet', async () => {
    const path = join(folder.path, 'not', 'yet');
    expect(await check(path)).toEqual([
      expect.objectContaining({ verdict: 'ok', found: expect.stringContaining('first reader') }),
    ]);
  });

  it('and names a file that is in its place', async () => {
    const path = join(folder.path, 'file');
    writeFileSync(path, '');
    expect(await check(path)).toEqual([
      expect.objectContaining({ verdict: 'problem', found: `SNAPSHOT_DIR=${path}: ${path} is not a folder` }),
    ]);
    expect(await check(join(path, 'below'))).toEqual([expect.objectContaining({ verdict: 'problem' })]);
  });

  it('as the user of the command, who may lack the permission to write', () => {
    const path = join(folder.path, 'others');
    mkdirSync(path);
    chmodSync(path, 0o555);
    const script = `
      const { checkDiskCopy } = await import(${JSON.stringify(new URL('../../../src/features/disk-copy/doctor.ts', import.meta.url).href)});
      const { inspectConfig } = await import(${JSON.stringify(new URL('../../../src/config/config.ts', import.meta.url).href)});
      console.log(JSON.stringify(await checkDiskCopy(inspectConfig({ SNAPSHOT_DIR: process.argv[1] }))));`;
    // Root ignores permissions, unless it gives up that capability.
    const isRoot = process.getuid?.() === 0;
    const through = isRoot
      ? [findSetpriv() ?? 'setpriv', '--bounding-set=-all', '--inh-caps=-all', '--']
      : [];
    const [command = '', ...args] = [...through, process.execPath, '--input-type=module', '-e', script, path];
    const { stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual([
      {
        check: 'copy on disk',
        verdict: 'problem',
        found: expect.stringMatching(/cannot be used: .*(EACCES|permission denied)/),
        mend: expect.stringContaining('local disk'),
      },
    ]);
  });

  it('and warns if the disk has less room than the copy may take', () => {
    const room = { folder: '/copy', exists: true, used: 100e6, free: 300e6, limit: 512e6 };
    expect(roomFinding(room)).toEqual({
      check: 'copy on disk',
      verdict: 'warning',
      found: '/copy has 100 MB of at most 512 MB, and its disk has only 300 MB left',
      mend: 'free room on that disk, or lower MEMORY_LIMIT: the copy takes up to twice as much',
    });
    expect(roomFinding({ ...room, free: 412e6 }).verdict).toBe('ok');
  });
});
