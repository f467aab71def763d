import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addSample, type Sample } from '../snapshot/rows.ts';
import type { Scene, TestReader } from '../snapshot/scene.ts';
import { runCommand } from '../support/run-command.ts';
import { until } from '../support/until.ts';
import { openCommandScene } from './scene.ts';

// Each command is a process, and a busy machine starts processes slowly.
describe('user', () => {
  const closing = new AsyncDisposableStack();
  let env: Record<string, string>;
  let scene: Scene;
  let sample: Sample;
  let reader: TestReader;

  beforeAll(async () => {
    ({ scene, env } = closing.use(await openCommandScene()));
    sample = await addSample(scene.sql);
    await scene.sql`insert into organizations (slug, name) values ('empty', 'Empty')`;
    await scene.publisher.publishDirty();
    reader = scene.reader();
    await reader.catalogue.providers();
    await until(() => reader.link.linked);
  });
  afterAll(() => closing.disposeAsync());

  const user = (...args: string[]) => runCommand(['user', ...args], env);
  /** The creator of an organization's only cluster, as a reader with all publications shows it. */
  const creator = async (organization: number) => {
    const { body } = await reader.clusters.clusters(organization);
    const [{ user }] = JSON.parse(body.identity.toString());
    return `${user.first_name} ${user.last_name}`;
  };

  it('list shows only the creators of an organization’s clusters', async () => {
    const [ofA, ofEmpty, json] = await Promise.all([
      user('list', '--org', 'a'),
      user('list', '--org', 'empty'),
      user('list', '--org', 'b', '--json'),
    ]);
    expect(ofA).toEqual({
      code: 0,
      stdout: 'ID  FIRST NAME  LAST NAME     CLUSTERS\n1   Ann         cluster-test  1\n',
      stderr: '',
    });
    expect(ofEmpty.stdout).toBe('no cluster of empty names its creator\n');
    expect(JSON.parse(json.stdout)).toEqual([
      { id: 2, firstName: 'Ann', lastName: 'cluster-test', clusters: 1 },
    ]);
  });

  it('rename shows another name in the clusters of each reader at once', async () => {
    expect(await creator(sample.a)).toBe('Ann cluster-test');
    const renamed = await user('rename', '1', '--org', 'a', '--first-name', 'Änne', '--last-name', 'Ørsted');
    expect(renamed).toEqual({
      code: 0,
      stdout: 'Ann cluster-test is now Änne Ørsted (id 3), in 1 cluster\n',
      stderr: '',
    });
    await until(async () => (await creator(sample.a)) === 'Änne Ørsted', { timeoutMs: 1000 });
    expect(await creator(sample.b)).toBe('Ann cluster-test');
  });

  it('delete needs a confirmation', async () => {
    const refused = await user('delete', '3', '--org', 'a');
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toMatch(/nothing was deleted, because there is no terminal.*--yes/);
    expect(await creator(sample.a)).toBe('Änne Ørsted');
  });

  it('delete leaves clusters without a name, and --json reports its effects', async () => {
    const { code, stdout, stderr } = await user('delete', '3', '--org', 'a', '--yes', '--json');
    expect({ code, stderr, output: JSON.parse(stdout) }).toEqual({
      code: 0,
      stderr: '',
      output: { id: 3, was: { firstName: 'Änne', lastName: 'Ørsted' }, clusters: 1, published: true },
    });
    await until(async () => (await creator(sample.a)) === ' ', { timeoutMs: 1000 });
    expect(await creator(sample.b)).toBe('Ann cluster-test');
    expect((await user('list', '--org', 'a')).stdout).toBe('no cluster of a names its creator\n');
  });

  it.each([
    [
      ['delete', '2', '--org', 'a', '--yes'],
      1,
      /^fleetbook: a has no user 2; see fleetbook user list --org a\n$/,
    ],
    [['delete', '1', '--org', 'a'], 1, /has no user 1/],
    [['delete', '2', '--org', 'unknown'], 1, /there is no organization "unknown"/],
    [
      ['delete', 'Ann', '--org', 'b'],
      2,
      /"Ann" is not a user id; give the number that `fleetbook user list` shows/,
    ],
    [
      ['rename', '2', '--org', 'b', '--first-name', '', '--last-name', ' '],
      2,
      /fleetbook user delete 2 --org b/,
    ],
    [['rename', '2', '--org', 'b', '--first-name', 'a\nb', '--last-name', ''], 2, /each be one line/],
    [['rename', '2', '--org', 'b', '--first-name', 'x'], 2, /required option '--last-name <name>'/],
    [['list'], 2, /required option '--org <slug>'/],
  ])('%j ends with %i and one line that names the accepted values', async (args, code, message) => {
    const result = await user(...args);
    expect({ code: result.code, stdout: result.stdout }).toEqual({ code, stdout: '' });
    expect(result.stderr).toMatch(message);
    expect(result.stderr.trim().split('\n')).toHaveLength(1);
    expect(await creator(sample.b)).toBe('Ann cluster-test');
  });
});
