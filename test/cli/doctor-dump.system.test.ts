import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempDisposableSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { checkDump } from '../../src/cli/doctor.ts';
import { inspectConfig } from '../../src/config/config.ts';
import { findSetpriv } from '../../src/processes/server-process.ts';

const folder = mkdtempDisposableSync(join(tmpdir(), 'fleetbook-doctor-'));
afterAll(() => folder.remove());

const check = (path: string) => checkDump(inspectConfig({ SNAPSHOT_DIR: path }));

describe('doctor checks SNAPSHOT_DIR', () => {
  it('and reports nothing if it is not set', async () => {
    expect(await checkDump(inspectConfig({}))).toEqual([]);
  });

  it('which can be written', async () => {
    const path = join(folder.path, 'kept');
    mkdirSync(path);
    expect(await check(path)).toEqual([
      { check: 'dump', verdict: 'ok', found: `${path} can be written`, mend: null },
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
      expect.objectContaining({
        verdict: 'problem',
        found: `SNAPSHOT_DIR=${path} cannot be used: ${path} is not a folder`,
      }),
    ]);
    expect(await check(join(path, 'below'))).toEqual([expect.objectContaining({ verdict: 'problem' })]);
  });

  it('as the user of the command, who may lack the permission to write', () => {
    const path = join(folder.path, 'others');
    mkdirSync(path);
    chmodSync(path, 0o555);
    const script = `
      const { checkDump } = await import(${JSON.stringify(new URL('../../src/cli/doctor.ts', import.meta.url).href)});
      const { inspectConfig } = await import(${JSON.stringify(new URL('../../src/config/config.ts', import.meta.url).href)});
      console.log(JSON.stringify(await checkDump(inspectConfig({ SNAPSHOT_DIR: process.argv[1] }))));`;
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
        check: 'dump',
        verdict: 'problem',
        found: expect.stringMatching(/cannot be used: .*(EACCES|permission denied)/),
        mend: expect.stringContaining('local disk'),
      },
    ]);
  });

  it('and warns if its disk has less room than memory', async () => {
    const path = join(folder.path, 'kept');
    const { bavail, bsize } = statfsSync(path);
    const settings = { SNAPSHOT_DIR: path, MEMORY_LIMIT: 2 * bavail * bsize };
    expect(await checkDump({ settings: { ...inspectConfig({}).settings, ...settings } })).toEqual([
      {
        check: 'dump',
        verdict: 'warning',
        found: expect.stringMatching(/^the disk of .* has only \d+ MB left$/),
        mend: expect.stringContaining('MEMORY_LIMIT'),
      },
    ]);
  });
});
