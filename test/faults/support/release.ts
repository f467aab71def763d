import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtempDisposable, readFile, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');
const PARTS = ['src', 'workers', 'drizzle', 'docs', 'package.json'] as const;

export interface Release extends AsyncDisposable {
  readonly folder: string;
  readonly cli: string;
}

async function release(fill: (folder: string) => Promise<void>): Promise<Release> {
  const folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-release-'));
  await fill(folder.path);
  await symlink(join(ROOT, 'node_modules'), join(folder.path, 'node_modules'));
  return {
    folder: folder.path,
    cli: join(folder.path, 'src/cli.ts'),
    [Symbol.asyncDispose]: () => folder.remove(),
  };
}

/** Returns the source of a commit; undefined if the clone lacks it. */
export async function releaseOf(revision: string): Promise<Release | undefined> {
  const commit = await git('rev-parse', '--verify', '--quiet', `${revision}^{commit}`);
  if (!commit) return undefined;
  return release(async (folder) => {
    const archive = join(folder, 'release.tar');
    await run('git', ['archive', '-o', archive, commit, ...PARTS], { cwd: ROOT });
    await run('tar', ['-xf', archive, '-C', folder]);
  });
}

async function git(...args: readonly string[]): Promise<string | undefined> {
  try {
    return (await run('git', args, { cwd: ROOT })).stdout.trim() || undefined;
  } catch {
    return undefined;
  }
}

/** Returns this release with another format of documents in the cache. */
export function releaseOfFormat(format: string): Promise<Release> {
  return release(async (folder) => {
    for (const part of PARTS) {
      await mkdir(folder, { recursive: true });
      await cp(join(ROOT, part), join(folder, part), { recursive: true });
    }
    const file = join(folder, 'src/snapshot/document/format.ts');
    const source = await readFile(file, 'utf8');
    const changed = source.replaceAll("'FB2'", `'${format}'`);
    if (changed.split(format).length !== 2) throw new Error('the format is defined in another place now');
    await writeFile(file, changed);
  });
}
