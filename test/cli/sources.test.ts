/** Commands about the runs of sources, and about several sources at once. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { registerSource } from '../../src/db/queries/runs.ts';
import { type CommandScene, openCommandScene } from '../support/command-scene.ts';
import { fleetbook } from '../support/fleetbook.ts';

let commands: CommandScene;
beforeAll(async () => {
  commands = await openCommandScene();
});
afterAll(() => commands[Symbol.asyncDispose]());

const run = (...args: string[]) => fleetbook(args, commands.env);
const BY = ['--by', 'ada@desk', '--reason', 'it hangs'];

it('the run of a source that is under way is cancelled with who and why', { timeout: 60_000 }, async () => {
  const { store } = commands.scene;
  await registerSource(store.db, { id: 'acme', kind: 'catalogue', adapter: 'test' });
  expect(await run('source', 'cancel', 'acme', ...BY)).toEqual({
    code: 0,
    stdout: 'acme: no run is under way\n',
    stderr: '',
  });
  expect(await run('source', 'cancel', 'nobody')).toEqual({
    code: 2,
    stdout: '',
    stderr: 'fleetbook: there is no source "nobody"; known are acme\n',
  });
  await using live = await store.liveRuns.begin('acme', undefined);
  const { id } = live.run;
  expect(await run('source', 'cancel', 'acme', ...BY)).toEqual({
    code: 0,
    stdout: `acme: run ${id} is cancelled: nothing of it is stored, and no attempt of it follows. The next slot runs as usual\n`,
    stderr: '',
  });
  expect((await run('runs', 'acme')).stdout).toMatch(
    new RegExp(`\\n${id} .* cancelled .*\\n\\n${id}: cancelled by ada@desk: it hangs\\n$`),
  );
  expect((await run('status')).stdout).toContain('acme: cancelled by ada@desk: it hangs\n');
  expect(JSON.parse((await run('source', 'cancel', 'acme', '--json')).stdout)).toMatchObject({
    source: 'acme',
    run: null,
  });
});
