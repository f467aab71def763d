import { execFileSync } from 'node:child_process';
import { inPackage } from '../../src/config/package.ts';

/** Returns the files of the repository that git knows, relative to its root. @param patterns git's, e.g. `*.md` or `src` */
export function trackedFiles(...patterns: readonly string[]): string[] {
  const listed = execFileSync('git', ['ls-files', '-z', '--', ...patterns], {
    cwd: inPackage(),
    encoding: 'utf8',
  });
  return listed.split('\0').filter((path) => path !== '');
}
