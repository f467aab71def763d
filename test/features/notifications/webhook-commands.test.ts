import { afterAll, beforeAll, expect, it } from 'vitest';
import { type CommandScene, openCommandScene } from '../../cli/scene.ts';
import { runCommand } from '../../support/run-command.ts';
import { type Receiver, receiver } from './webhook-receiver.ts';

let here: CommandScene;
let hook: Receiver;
beforeAll(async () => {
  [here, hook] = await Promise.all([openCommandScene(), receiver()]);
  await here.scene.sql`insert into organizations (slug, name) values ('one', 'One'), ('two', 'Two')`;
});
afterAll(() => Promise.all([here[Symbol.asyncDispose](), hook[Symbol.asyncDispose]()]));
const webhook = (...args: string[]) => runCommand(['webhook', ...args], here.env);

it('fleetbook webhook adds, lists, tests and removes webhooks of one organization', async () => {
  expect((await webhook('list', '--org', 'one')).stdout).toBe(
    'one has no webhook; add one: fleetbook webhook add --org one --url https://…\n',
  );
  const secure = hook.url.replace('http:', 'https:');
  const added = await webhook('add', '--org', 'one', '--url', secure, '--by', 'ada');
  expect(added).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^webhook 1 of one gets clusters and prices; its signing secret is shown only now:\nwhsec_[\w+/]{43}=\n$/,
    ),
  });
  const [secret = ''] = /whsec_\S+/.exec(added.stdout) ?? [];
  // The command accepts https only, and the receiver has no certificate.
  await here.scene.sql`update organization_webhooks set url = ${hook.url}`;
  hook.status = 503;
  expect(await webhook('test', '1', '--org', 'one')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('webhook 1 did not accept the message: it answered 503'),
  });
  hook.status = 200;
  expect((await webhook('test', '1', '--org', 'one', '--json')).stdout).toContain('"delivered": true');
  expect(hook.taken[0]?.headers['webhook-signature']).toMatch(/^v1,/);
  expect(JSON.parse(hook.taken[0]?.text ?? '')).toMatchObject({
    type: 'webhook.test',
    data: { organization: 'one' },
  });
  const listed = await webhook('list', '--org', 'one');
  expect(listed.stdout).toMatch(/^1 +http:\/\/127\.0\.0\.1:\d+ +clusters, prices +.* +0 +none yet *$/m);
  expect(listed.stdout).not.toContain('of-a-secret-path');
  expect(listed.stdout).not.toContain(secret);
  expect(await webhook('delete', '1', '--org', 'two')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('two has no webhook 1; see: fleetbook webhook list --org two'),
  });
  expect(await webhook('delete', '1', '--org', 'one')).toMatchObject({
    code: 0,
    stdout: 'webhook 1 of one is removed\n',
  });
  const actions = await here.scene.sql`select action, by from audit_log order by id`;
  expect(actions.map(({ action }) => action)).toEqual([
    'webhook.add',
    'webhook.test',
    'webhook.test',
    'webhook.remove',
  ]);
});

const RESTOCKED = ['add', '--org', 'one', '--url', 'https://example.org/', '--events', 'restocked'] as const;

it.each([
  [['add', '--org', 'none', '--url', 'https://example.org/'], 1, 'there is no organization "none"'],
  [['add', '--org', 'one', '--url', 'http://example.org/'], 2, '--url must start with https://'],
  [
    ['add', '--org', 'one', '--url', 'https://example.org/', '--events', 'clusters,disks'],
    2,
    '--events has "disks"; the events are clusters, prices, savings, stock, restocked',
  ],
  [
    ['add', '--org', 'one', '--url', 'https://example.org/', '--events', 'savings'],
    2,
    '--threshold is missing; give the smallest saving per month',
  ],
  [
    ['add', '--org', 'one', '--url', 'https://example.org/', '--events', 'restocked'],
    2,
    '--machines is missing; give the machines whose return is an event',
  ],
  [
    ['add', '--org', 'one', '--url', 'https://example.org/', '--machines', '1'],
    2,
    '--machines is for the event restocked; add it',
  ],
  [[...RESTOCKED, '--machines', '1,x'], 2, '--machines has "x", which is no id'],
  [[...RESTOCKED, '--machines', '7,8,7'], 2, '--machines has 7 twice; name each machine once'],
  [
    [...RESTOCKED, '--machines', Array.from({ length: 101 }, (_, i) => i + 1).join()],
    2,
    '--machines has 101 machines; a webhook has at most 100',
  ],
  [[...RESTOCKED, '--machines', '999999'], 1, '--machines has 999999, which no catalogue lists'],
] as const)('fleetbook webhook %j exits with %i', async (args, code, message) => {
  expect(await webhook(...args)).toMatchObject({ code, stderr: expect.stringContaining(message) });
});
