/** `npm run bench -- <name> [options]`: runs one benchmark; without a name it lists them. */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { inPackage } from '../src/config/package.ts';

/** What npm builds before a benchmark that measures it, by name. */
const BUILDS: Readonly<Record<string, readonly string[]>> = {
  read: ['run', '--silent', 'build'],
  streams: ['run', '--silent', 'build'],
  neighbours: ['run', '--silent', 'build'],
  console: ['run', '--silent', 'build:console'],
};

const [name = '', ...options] = process.argv.slice(2);
const script = join(import.meta.dirname, `${name}.ts`);
if (!/^[a-z-]+$/.test(name) || name === 'main' || !existsSync(script)) {
  for (const line of benchmarks()) console.error(line);
  process.exit(2);
}
const build = BUILDS[name];
const built =
  build === undefined
    ? 0
    : spawnSync('npm', build, { cwd: inPackage(), stdio: ['ignore', 2, 'inherit'] }).status;
process.exitCode = built === 0 ? run() : 1;

function run(): number {
  const args = [...process.execArgv, script, ...options];
  return spawnSync(process.execPath, args, { cwd: inPackage(), stdio: 'inherit' }).status ?? 1;
}

/** Returns a line for each benchmark: the beginning of its file's first comment. */
function benchmarks(): string[] {
  return globSync(join(import.meta.dirname, '*.ts'))
    .sort()
    .flatMap((path) => {
      const [, what] =
        /^\/\*\*\s+(?:\* )?`npm run bench -- [a-z-]+[^`]*`: (.*?)\.\s/s.exec(readFileSync(path, 'utf8')) ??
        [];
      return what === undefined || path.endsWith('main.ts')
        ? []
        : [`npm run bench -- ${basename(path, '.ts').padEnd(10)} ${what.replaceAll(/\s*\n \* /g, ' ')}`];
    });
}
