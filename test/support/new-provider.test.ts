import { execFile } from 'node:child_process';
import { cp, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { newProvider } from './new-provider.ts';
import { scratchFolder } from './scratch.ts';

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

it('the files of a new provider are formatted, have correct types and pass the conformance suite', async () => {
  await using folder = await scratchFolder();
  const at = (path: string) => join(folder.path, path);
  const run = async (program: string, ...args: string[]) => {
    const env = { ...process.env, NO_COLOR: '1' };
    const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], {
      cwd: folder.path,
      env,
    });
    return stdout;
  };
  for (const path of [
    'src',
    'workers',
    'test/conformance',
    'test/fixtures',
    'test/support',
    'docs/generate',
    'docs/upgrades',
  ])
    await cp(join(ROOT, path), at(path), { recursive: true });
  for (const path of ['package.json', 'tsconfig.json', 'biome.json']) await cp(join(ROOT, path), at(path));
  await symlink(join(ROOT, 'node_modules'), at('node_modules'));

  const output = await run('test/support/new-provider.ts', 'acme-cloud');
  expect(output).toMatch(
    /^wrote src\/sources\/providers\/acme-cloud\.ts\n(wrote .*\n)+Acme Cloud is provider \d+\. /,
  );
  const written = [...output.matchAll(/^wrote (.*)$/gm)].map(([, path = '']) => path);
  await run('docs/generate/adapters.ts');
  await run('node_modules/@biomejs/biome/bin/biome', 'check', '--vcs-enabled=false', ...written);
  const files = written.filter((path) => path.endsWith('.ts'));
  await writeFile(at('new.json'), JSON.stringify({ extends: './tsconfig.json', files, include: [] }));
  await run('node_modules/@typescript/native/bin/tsc', '-p', 'new.json');
  const include = ['test/conformance/catalogue.test.ts'];
  await writeFile(at('vitest.config.ts'), `export default ${JSON.stringify({ test: { include } })};`);
  const tests = await run('node_modules/vitest/vitest.mjs', 'run', '-t', 'acme-cloud');
  expect(tests).toMatch(/Tests +\d\d passed/);
}, 120_000);
