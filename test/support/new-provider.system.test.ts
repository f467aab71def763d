import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, mkdtempDisposable, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { pageCommands } from '../docs/provider-page.ts';
import { newProvider } from './new-provider.ts';

const ROOT = join(import.meta.dirname, '../..');
const none = () => false;

it('a new provider gets the number after the largest one', () => {
  const adapters = [{ id: 'a', provider: { id: 4 } }, { id: 'list' }, { id: 'b', provider: { id: 2 } }];
  expect(newProvider('acme-cloud', adapters, none).number).toBe(5);
  expect(newProvider('acme-cloud', [], none).number).toBe(1);
  const full = [{ id: 'a', provider: { id: 999 } }];
  expect(() => newProvider('acme-cloud', full, none)).toThrow('no provider id below 1000 is left');
});

it.each([
  ['', 'the id must be lower-case letters, digits and single hyphens'],
  ['Acme', 'it is "Acme"'],
  ['acme--cloud', 'it is "acme--cloud"'],
  ['../acme', 'it is "../acme"'],
  ['9lives', 'it is "9lives"'],
  ['a'.repeat(41), 'at most 40'],
  ['ops', 'the variables of its source would begin as the setting OPS_'],
  ['clusters', 'the variables of its source would begin as the setting CLUSTERS_URL'],
  ['taken', 'the id taken is taken: test/conformance/taken.ts exists; choose another id'],
])('a new provider cannot have the id %j', (id, problem) => {
  expect(() => newProvider(id, [], (path) => path === 'test/conformance/taken.ts')).toThrow(problem);
});

it('the commands of docs/adding-a-provider.md do what the page says', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-page-'));
  const at = (path: string) => join(folder.path, path);
  const env = {
    ...process.env,
    NO_COLOR: '1',
    PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`,
  };
  const run = async (program: string, ...args: string[]) => {
    const { stdout } = await promisify(execFile)(program, args, { cwd: folder.path, env });
    return stdout;
  };
  for (const path of [
    'src',
    'workers',
    'test/conformance',
    'test/fixtures',
    'test/sources/http',
    'test/support',
    'docs',
    'deploy',
    'packages/client/src',
  ])
    await cp(join(ROOT, path), at(path), { recursive: true });
  for (const path of ['package.json', 'tsconfig.json', 'biome.json', '.gitignore'])
    await cp(join(ROOT, path), at(path));
  await symlink(join(ROOT, 'node_modules'), at('node_modules'));
  const include = ['test/conformance/catalogue.test.ts'];
  await writeFile(at('vitest.config.ts'), `export default ${JSON.stringify({ test: { include } })};`);

  let output = '';
  const failures: string[] = [];
  const written = () => [...output.matchAll(/^wrote (.*)$/gm)].map(([, path = '']) => path);
  // `npm test` and `npm run check` prepare servers and check the whole clone. Here they run for the new files alone.
  const shortened: Record<string, () => Promise<string>> = {
    'npm test -- test/conformance -t acme-cloud': () => run('vitest', 'run', '-t', 'acme-cloud'),
    'npm run check': async () => {
      await run('biome', 'check', '--vcs-enabled=false', ...written());
      const files = written().filter((path) => path.endsWith('.ts'));
      await writeFile(at('new.json'), JSON.stringify({ extends: './tsconfig.json', files, include: [] }));
      return run(join(ROOT, 'node_modules/@typescript/native/bin/tsc'), '-p', 'new.json');
    },
  };
  for (const { command, fails } of pageCommands()) {
    const result = (shortened[command] ?? (() => run('bash', '-c', command)))();
    if (fails)
      failures.push(
        await result.then(
          () => `${command} passed`,
          ({ stdout }) => String(stdout),
        ),
      );
    else output += await result;
  }
  expect(output).toMatch(/^wrote src\/sources\/providers\/acme-cloud\.ts$/m);
  expect(output).toMatch(/^Acme Cloud is provider \d+\. /m);
  expect(output.match(/Tests +\d\d passed/g)).toHaveLength(2);
  expect(failures).toEqual([expect.stringMatching(/vcpus[\s\S]*Tests +\d+ failed/)]);
  expect(readFileSync(at('docs/adapters.md'), 'utf8')).toContain('### acme-cloud');
  expect(readFileSync(at('src/sources/providers/acme-cloud.ts'), 'utf8')).not.toContain('vcpus');
}, 180_000);
