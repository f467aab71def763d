/**
 * Global set-up: bundles the sources into `dist`. A bundled program starts with half of the CPU time, and so does a program of the tests
 * whose compiled code is stored.
 */
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { inPackage } from '../../src/config/package.ts';
import { TEST_PROGRAM } from './program.ts';

export default function setUp(): void {
  process.env.NODE_COMPILE_CACHE ??= inPackage('node_modules/.cache/node-compile-cache');
  // Another project of this run has built it.
  if (process.env[TEST_PROGRAM]) return;
  // The names of chunks depend on their code, so those of an earlier bundle would stay.
  for (const name of ['chunks', 'src']) rmSync(inPackage('dist', name), { recursive: true, force: true });
  execFileSync(process.execPath, [inPackage('node_modules/rolldown/bin/cli.mjs'), '-c'], {
    cwd: inPackage(),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  process.env[TEST_PROGRAM] = inPackage('dist/src/cli.js');
}
