/**
 * `node test/package/main.ts [--node 22,24,26] [--user root,ordinary] [--way npx,global]`: installs the packed package as a new user
 * with an empty npm cache, starts `up`, and prints the seconds to the first answer. It also runs publint and
 * are-the-types-wrong on all packages. It needs a registry, so CI does not run it.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtempDisposable, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { firstAnswer, type Start } from './first-answer.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const PUBLINT = 'publint@0.3.25';
const TYPES_WRONG = '@arethetypeswrong/cli@0.18.5';
const say = (line: string) => process.stdout.write(`${line}\n`);

const { values } = parseArgs({
  options: {
    node: { type: 'string', default: '22,24,26' },
    user: { type: 'string', default: 'root,ordinary' },
    way: { type: 'string', default: 'npx,global' },
    'no-lint': { type: 'boolean', default: false },
  },
});
const chosen = <T extends string>(name: 'node' | 'user' | 'way', known: readonly T[]): T[] => {
  const words = values[name].split(',');
  const unknown = words.find((word) => !known.includes(word as T));
  if (unknown !== undefined) {
    process.stderr.write(`--${name} has ${unknown}; give some of ${known.join(', ')}\n`);
    process.exit(2);
  }
  return words as T[];
};
const nodes = chosen('node', ['22', '24', '26']);
const users = chosen('user', ['root', 'ordinary']);
const ways = chosen('way', ['npx', 'global']);
if (process.getuid?.() !== 0) {
  process.stderr.write('only root can test both users; start it as root, e.g. in a container\n');
  process.exit(2);
}

/** Packs a package, and returns the tarball. */
async function pack(folder: string, target: string): Promise<string> {
  const args = ['pack', '--json', '--loglevel=error', '--pack-destination', target];
  const { stdout } = await run('npm', args, { cwd: folder, maxBuffer: 64 << 20 });
  // Scripts print before the description.
  const [, name = ''] = /"filename":\s*"([^"]+)"/.exec(stdout) ?? [];
  const tarball = join(target, name.replace('@', '').replace('/', '-'));
  say(`${name}: ${(await stat(tarball)).size} bytes packed`);
  return tarball;
}

/** Returns false with the report of the tool, if it finds something. */
async function passes(title: string, ...args: string[]): Promise<boolean> {
  const outcome = await run('npx', ['--yes', ...args], { cwd: tmpdir() }).then(
    ({ stdout }) => ({ isGood: true, stdout }),
    (error: { stdout?: string; message: string }) => ({
      isGood: false,
      stdout: error.stdout || error.message,
    }),
  );
  say(outcome.isGood ? `${title}: passes` : `${title}: fails\n${outcome.stdout}`);
  return outcome.isGood;
}

/** Installs a release of Node.js from its npm package. Returns a PATH with this release and the npm of this machine. */
async function pathOfNode(folder: string, release: string): Promise<string> {
  const bin = join(folder, `node-${release}`);
  await mkdir(bin);
  // Its install script puts the program of this platform into place.
  await writeFile(join(bin, 'package.json'), JSON.stringify({ allowScripts: { node: true } }));
  const args = ['install', `node@${release}`, '--loglevel=error'];
  await run('npm', args, { cwd: bin });
  const program = join(bin, 'node_modules/node/bin/node');
  await symlink(program, join(bin, 'node'));
  say(`Node.js ${(await run(program, ['--version'])).stdout.trim()}`);
  const others = (process.env.PATH ?? '').split(':').filter((each) => !each.includes('node_modules'));
  return [bin, ...others].join(':');
}

await using scratch = await mkdtempDisposable(join(tmpdir(), 'fleetbook-matrix-'));
await run('chmod', ['755', scratch.path]);
const tarballs = [];
for (const folder of ['', 'packages/client', 'packages/mcp'])
  tarballs.push(await pack(join(ROOT, folder), scratch.path));
let isGood = true;
if (!values['no-lint']) {
  for (const tarball of tarballs) {
    const name = tarball.slice(scratch.path.length + 1);
    isGood = (await passes(`publint ${name}`, PUBLINT, tarball, '--strict')) && isGood;
    // The package `mcp` is a program without exports. The packages are ES modules, which Node.js 22 also gives to `require`.
    if (!name.includes('mcp'))
      isGood = (await passes(`attw ${name}`, TYPES_WRONG, tarball, '--profile', 'esm-only')) && isGood;
  }
}
const rows: string[] = [];
for (const node of nodes) {
  const path = await pathOfNode(scratch.path, node);
  for (const user of users) {
    for (const way of ways) {
      const start: Start = { tarball: tarballs[0] ?? '', path, user, way };
      const outcome = await firstAnswer(join(scratch.path, `${node}-${user}-${way}`), start).catch(
        (error: Error) => {
          isGood = false;
          return error.message;
        },
      );
      const cells = typeof outcome === 'string' ? `failed: ${outcome}` : Object.values(outcome).join(' | ');
      rows.push(`| ${node} | ${user} | ${way} | ${cells} |`);
      say(rows.at(-1) ?? '');
    }
  }
}
say(
  '\n| Node.js | user | way | seconds of installation | seconds to the first answer, with installation | MB of the package | MB of PostgreSQL | exit code |\n|---|---|---|---|---|---|---|---|',
);
for (const row of rows) say(row);
process.exitCode = isGood ? 0 : 1;
