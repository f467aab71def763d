import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { identify } from '../../src/dev/process-identity.ts';
import { until } from '../support/until.ts';

const ROOT = join(import.meta.dirname, '../..');

afterEach(() => vi.unstubAllEnvs());

function run(...args: string[]): Promise<{ code: number; lines: string[] }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [join(ROOT, 'test/run.ts'), ...args], { cwd: ROOT }, (error, stdout) => {
      const lines = stdout.trimEnd().split('\n');
      // One line names Redis, and in CI or with `npm run test:stock` one names PostgreSQL.
      resolve({
        code: Number(error?.code ?? 0),
        lines: lines.filter(
          (line) =>
            !/^(the tests about statements|all tests that share a server|the tests) ran on /.test(line),
        ),
      });
    });
  });
}

/** A folder of test files with a configuration. Below node_modules/.cache, so that they can import vitest. */
async function testFolder(files: Readonly<Record<string, string>>) {
  const cache = join(ROOT, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtempDisposable(join(cache, 'run-'));
  const all = { 'vitest.config.ts': 'export default { test: { exclude: [] } };', ...files };
  for (const [name, content] of Object.entries(all)) await writeFile(join(folder.path, name), content);
  return folder;
}

it('passes its arguments on, lists skipped tests with that name, and ends with the totals', async () => {
  await using folder = await testFolder({
    'some.test.ts': `import { describe, it } from 'vitest';
      const elsewhere = { skip: true, meta: { skipped: 'needs a moon' } };
      describe('by day', () => { it('shines', () => {}); it('glows', elsewhere, () => {}); });
      it('at night', () => {}); it('at dawn', elsewhere, () => {});`,
  });
  const { code, lines } = await run(`--root=${folder.path}`, '-t', 'day > (shines|glows)');
  expect(lines.filter((line) => line.startsWith('skipped: '))).toEqual([
    expect.stringMatching(/some\.test\.ts > by day > glows: needs a moon$/),
  ]);
  expect(lines.at(-1)).toBe('1 passed, 0 failed, 3 skipped');
  expect(code).toBe(0);
});

it('writes a summary, unless it left tests out', async () => {
  await using folder = await testFolder({
    'some.test.ts': `import { it } from 'vitest';
      it('shines', () => {}); it('glows', { skip: true, meta: { skipped: 'needs a moon' } }, () => {});`,
  });
  const path = join(folder.path, 'summary.json');
  vi.stubEnv('TEST_SUMMARY', path);
  await run(`--root=${folder.path}`, '-t', 'shines');
  expect(existsSync(path)).toBe(false);
  await run(`--root=${folder.path}`);
  const file = relative(ROOT, join(folder.path, 'some.test.ts'));
  expect(JSON.parse(await readFile(path, 'utf8'))).toEqual({
    at: expect.stringMatching(/Z$/),
    files: [file],
    skipped: [{ file, name: 'glows', reason: 'needs a moon' }],
  });
});

it('also reports errors of a failed test’s clean-up', async () => {
  await using folder = await testFolder({
    'call.test.ts': `import { expect, it } from 'vitest';
      import { fakeUpstream } from '${join(ROOT, 'test/support/fake-upstream.ts')}';
      it('calls', async () => {
        await using upstream = await fakeUpstream();
        const { status } = await fetch(upstream.url + '/v1/sizes?cursor=b');
        expect(status).toBe(200);
      });`,
  });
  const { lines } = await run(`--root=${folder.path}`);
  expect(lines.at(-2)).toMatch(
    /^failed: .*call\.test\.ts > calls: expected 501 to be 200.*; fake upstream: unexpected call: GET \/v1\/sizes\?cursor=b$/,
  );
}, 60_000);

it('fails when no test ran', async () => {
  const { code, lines } = await run('test/dev/no-such-file.test.ts');
  expect(lines.slice(-2)).toEqual([
    'failed outside of the tests: vitest ended with code 1, see above',
    '0 passed, 1 failed',
  ]);
  expect(code).toBe(1);
});

it('repeats failed files in CI, with the reason, and counts the last result', async () => {
  await using folder = await testFolder({});
  const write = (name: string, content: string) => writeFile(join(folder.path, name), content);
  const head = `import { beforeAll, expect, it } from 'vitest'; import { existsSync, writeFileSync } from 'node:fs';`;
  const mark = `'${join(folder.path, 'mark')}'`;
  await write(
    'unlucky.test.ts',
    `${head} beforeAll(() => { if (existsSync(${mark})) return; writeFileSync(${mark}, ''); throw new Error('no luck'); });
     it('one', () => {});`,
  );
  await write('sound.test.ts', `${head} it('two', () => {});`);
  const name = relative(ROOT, join(folder.path, 'unlucky.test.ts'));
  vi.stubEnv('CI', 'true');
  const once = await run(`--root=${folder.path}`);
  expect(once.lines.filter((line) => line.startsWith('failed once'))).toEqual([
    expect.stringMatching(new RegExp(`^failed once: ${name} > .*: no luck$`)),
  ]);
  expect(once.lines).toContain(`running again, one after the other: ${name}`);
  expect(once.lines.slice(-2)).toEqual([
    `flaky: ${name}: passed when it was run again, see "failed once" above`,
    '2 passed, 0 failed',
  ]);
  expect(once.code).toBe(0);
  await write('wrong.test.ts', `${head} it('three', () => expect(1).toBe(2));`);
  const wrong = await run(`--root=${folder.path}`);
  expect(wrong.lines.slice(-2)).toEqual([
    expect.stringMatching(/^failed: .*wrong\.test\.ts > three: expected 1 to be 2/),
    '2 passed, 1 failed',
  ]);
  expect(wrong.code).toBe(1);
});

it.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)(
  'reports the results so far if it is interrupted by %s, and leaves no process',
  async (signal, code) => {
    // As in a terminal: all foreground processes receive the signal.
    const files = [
      'test/dev/until.test.ts',
      'test/dev/postgres.system.test.ts',
      'test/dev/redis.system.test.ts',
    ];
    const child = spawn(process.execPath, [join(ROOT, 'test/run.ts'), ...files, '--maxWorkers=1'], {
      cwd: ROOT,
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const closed = once(child, 'close');
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    // Its server and a worker run by then.
    const own = await until(() => offspring(child.pid ?? 0).length > 2 && offspring(child.pid ?? 0), {});
    process.kill(-(child.pid ?? 0), signal);
    expect(await closed).toEqual([code, null]);
    const lines = output.trimEnd().split('\n');
    expect(lines.at(-2)).toMatch(
      new RegExp(`^interrupted by ${signal}: [0-2] of 3 test files ran to their end`),
    );
    expect(lines.at(-1)).toMatch(/^\d+ passed, 0 failed(, \d+ skipped)?$/);
    expect(own.filter(isRunning)).toEqual([]);
  },
);

it('in quick mode runs only tests without servers, and states how many it omitted', async () => {
  const { code, lines } = await run('--quick', 'test/dev/until.test.ts', 'test/dev/lock.system.test.ts');
  expect(lines.slice(-2)).toEqual([
    expect.stringMatching(/^left out: \d+ of \d+ test files, which need PostgreSQL, Redis or processes;/),
    '3 passed, 0 failed',
  ]);
  expect(code).toBe(0);
});

/** Each process started by this one, and by those. */
function offspring(pid: number): number[] {
  const all = execFileSync('ps', ['-eo', 'pid=,ppid='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/ +/).map(Number));
  const below = (parent: number): number[] =>
    all.flatMap(([child = 0, of]) => (of === parent ? [child, ...below(child)] : []));
  return below(pid);
}

function isRunning(pid: number): boolean {
  return identify(pid) !== undefined;
}
