/** The examples of docs/client.md compile, and run against the API. */
import { execFile } from 'node:child_process';
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { inPackage } from '../../../src/config/package.ts';
import { testApi } from '../../http/harness.ts';
import { FakeExtensions } from './fake-extensions.ts';

const run = promisify(execFile);

/** The output of each, in the order of the page. */
const PRINTED = [
  /^cax11 costs 0\.000103791666666667 USD a minute, as of 2026-11-20T12:00:00Z$/,
  /^true$/,
  /^no such cluster: There is nothing here that this token may read\.$/,
  /^cax21 0\.0002\ncax31 [\s\S]*\ncax21 8\.76$/,
  /^all clusters cost 210\.24 USD a month\ncluster-test 210\.24$/,
  /^1 at-2$/,
  /^the catalogue v1$/,
];

describe('the examples of the guide', () => {
  it('compile and run', async () => {
    await using api = await testApi();
    await using fake = await FakeExtensions.start(api.app.routing, api.token);
    await api.app.ready();
    const guide = await readFile(inPackage('docs/client.md'), 'utf8');
    const examples = [...guide.matchAll(/^```ts\n(.*?)^```/gms)].map(([, text = '']) => text);
    expect(examples).toHaveLength(PRINTED.length);
    // Inside the package: the compiler finds Node's types only from here.
    await using folder = await mkdtempDisposable(inPackage('test/packages/client/guide-'));
    const files = examples.map((_, i) => `example-${i + 1}.ts`);
    for (const [i, file] of files.entries()) {
      const text = (examples[i] ?? '')
        .replaceAll("'@fleetbook/client'", "'../../../../packages/client/src/index.ts'")
        .replaceAll('https://fleetbook.example.com', fake.url)
        .replaceAll('fb_…', api.token);
      await writeFile(join(folder.path, file), text);
    }
    await writeFile(
      join(folder.path, 'tsconfig.json'),
      JSON.stringify({ extends: '../../../../tsconfig.json', include: ['.'] }),
    );
    const options = { cwd: folder.path };
    const compiled = run(inPackage('node_modules/.bin/tsc'), ['-p', '.'], options).catch(
      (error: { stdout: string }) => error.stdout,
    );
    for (const [i, file] of files.entries()) {
      const program = run(process.execPath, [file], options);
      if (examples[i]?.includes('fleetbook.changes(')) {
        // The example follows the feed and waits for this.
        await fake.isFollowed();
        fake.happens({ type: 'catalogue.changed' }, { type: 'cluster.deleted', slug: 'groesse-sued' });
      }
      expect((await program).stdout.trim(), file).toMatch(PRINTED[i] ?? expect.unreachable());
    }
    expect(await compiled).toMatchObject({ stdout: '' });
    expect((await readFile(join(folder.path, 'machines.parquet'))).length).toBeGreaterThan(0);
  });
});
