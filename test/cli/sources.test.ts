/** Commands about the runs of sources, and about several sources at once. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { auditRecords } from '../../src/features/console/queries/audit.ts';
import { LiveRuns } from '../../src/sync/runs/live.ts';
import { registerSource } from '../../src/sync/runs/run.ts';
import { fakeUpstream } from '../support/fake-upstream.ts';
import { hetzner } from '../support/provider-answers.ts';
import { runCommand } from '../support/run-command.ts';
import { type CommandScene, openCommandScene } from './scene.ts';

let commands: CommandScene;
beforeAll(async () => {
  commands = await openCommandScene();
});
afterAll(() => commands[Symbol.asyncDispose]());

const run = (...args: string[]) => runCommand(args, commands.env);
const BY = ['--by', 'ada@desk', '--reason', 'it hangs'];

it('an active run is cancelled with operator and reason', async () => {
  const { store } = commands.scene;
  await registerSource(store.db, { id: 'acme', kind: 'catalogue', adapter: 'test' });
  expect(await run('source', 'cancel', 'acme', ...BY)).toEqual({
    code: 0,
    stdout: 'acme: has no current run\n',
    stderr: '',
  });
  expect(await run('source', 'cancel', 'unknown')).toEqual({
    code: 2,
    stdout: '',
    stderr: 'fleetbook: there is no source "unknown"; known sources: acme\n',
  });
  await using liveRuns = new LiveRuns(store.connection);
  await using live = await liveRuns.begin('acme', undefined);
  const { id } = live.run;
  expect(await run('source', 'cancel', 'acme', ...BY)).toEqual({
    code: 0,
    stdout: `acme: run ${id} is cancelled: nothing of it is stored, and it is not retried. The next slot runs as usual\n`,
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

it('several sources are disabled and enabled at once; a failure of one does not stop the others', async () => {
  const { store } = commands.scene;
  for (const id of ['one', 'two']) await registerSource(store.db, { id, kind: 'catalogue', adapter: 'test' });
  const disabled = await run('source', 'disable', 'one', 'unknown', 'two', 'one', ...BY);
  expect(disabled).toEqual({
    code: 1,
    stdout: expect.stringMatching(/^one: disabled: .*\ntwo: disabled: .*\n$/),
    stderr: `fleetbook: there is no source "unknown"; known sources: acme, one, two
fleetbook: 1 of 3 sources failed: unknown
`,
  });
  const again = await run('source', 'disable', 'two', 'unknown', '--json');
  expect([again.code, JSON.parse(again.stdout)]).toEqual([
    1,
    [
      {
        source: 'two',
        changed: false,
        disabled: { at: expect.any(String), by: 'ada@desk', reason: 'it hangs' },
      },
      { source: 'unknown', error: 'there is no source "unknown"; known sources: acme, one, two' },
    ],
  ]);
  const enabled = await run('source', 'enable', 'one', 'two', '--by', 'ada@desk', '--reason', 'mended');
  expect([enabled.code, enabled.stdout.match(/^\w+: enabled/gm)]).toEqual([
    0,
    ['one: enabled', 'two: enabled'],
  ]);
  expect((await run('source', 'cancel', 'one', 'two')).stdout).toBe(
    'one: has no current run\ntwo: has no current run\n',
  );
  const audited = (await auditRecords(store.db, {})).rows
    .filter(({ action }) => action.startsWith('source.'))
    .map(({ action, subject, reason }) => `${action} ${subject.id}: ${reason}`);
  expect(audited.slice(0, 4)).toEqual([
    'source.enable two: mended',
    'source.enable one: mended',
    'source.disable two: it hangs',
    'source.disable one: it hangs',
  ]);
});

it('several sources are synced one after the other, and a failure of one is reported', async () => {
  await using upstream = await fakeUpstream();
  hetzner(upstream, [{ names: ['cx11', 'cx21'] }], 2);
  const env = {
    ...commands.env,
    CATALOGUE_CURRENCY: 'EUR',
    HETZNER_URL: upstream.url,
    LINODE_URL: 'http://127.0.0.1:1',
  };
  const synced = await runCommand(['sync', 'linode', 'hetzner', 'nowhere'], env);
  expect(synced.code).toBe(1);
  expect(synced.stdout).toMatch(/^hetzner: changed: 2 rows, 2 new/);
  expect(synced.stderr).toMatch(
    /^fleetbook: .*127\.0\.0\.1:1[\s\S]*\nfleetbook: there is no source "nowhere"; configured sources: .*\nfleetbook: 2 of 3 sources failed: linode, nowhere\n$/,
  );
});
