import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { confirmSlug } from '../../src/cli/accounts/org.ts';
import { addSample, type Sample } from '../snapshot/rows.ts';
import type { Scene, TestReader } from '../snapshot/scene.ts';
import { runCommand } from '../support/run-command.ts';
import { until } from '../support/until.ts';
import { openCommandScene } from './scene.ts';

// Each command is a process, and a busy machine starts processes slowly.
describe('org', () => {
  const closing = new AsyncDisposableStack();
  let env: Record<string, string>;
  let scene: Scene;
  let sample: Sample;
  let reader: TestReader;

  beforeAll(async () => {
    ({ scene, env } = closing.use(await openCommandScene()));
  });
  afterAll(() => closing.disposeAsync());

  const org = (...args: string[]) => runCommand(['org', ...args], env);
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand([...args, '--json'], env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout);
  };

  it('list without organizations shows how to create one', async () => {
    expect(await org('list')).toEqual({
      code: 0,
      stdout: 'there is no organization; create one: fleetbook org create <slug>\n',
      stderr: '',
    });
    expect(await json('org', 'list')).toEqual([]);
  });

  it('create --json prints only the organization', async () => {
    // Organizations a and b, with a cluster each.
    sample = await addSample(scene.sql);
    expect(await json('org', 'create', 'acme', '--name', 'Acme Ltd')).toEqual({
      id: expect.any(Number),
      slug: 'acme',
      name: 'Acme Ltd',
    });
    const again = await org('create', 'acme', '--json');
    expect(again).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('is taken') });
    expect(await org('create', 'x', '--name', ' ')).toMatchObject({ code: 2, stdout: '' });
  });

  it('list shows each organization with its clusters and valid tokens, aligned', async () => {
    const { id } = await json('token', 'create', '--org', 'acme');
    await json('token', 'delete', String(id));
    await json('token', 'create', '--org', 'acme');
    const { stdout } = await org('list');
    expect(stdout.replaceAll(/\d+ (?:s|min) ago/g, 'now')).toBe(
      'ORGANIZATION  NAME      CLUSTERS  TOKENS  MADE\n' +
        'a             a         1         0       now\n' +
        'acme          Acme Ltd  0         1       now\n' +
        'b             b         1         0       now\n',
    );
    expect((await json('org', 'list'))[1]).toEqual({
      id: expect.any(Number),
      slug: 'acme',
      name: 'Acme Ltd',
      clusters: 0,
      tokens: 1,
      createdAt: expect.stringMatching(/Z$/),
      deletedAt: null,
    });
  });

  it('rename sets another name and publishes nothing, since no document contains it', async () => {
    const versions = () => scene.sql`select id, clusters_version from organizations order by id`;
    const before = await versions();
    expect(await org('rename', 'acme', '--name', 'Acme Inc')).toEqual({
      code: 0,
      stdout: 'organization acme has the name Acme Inc now; its slug does not change\n',
      stderr: '',
    });
    expect(await json('org', 'rename', 'acme', '--name', 'Acme')).toMatchObject({ name: 'Acme' });
    expect(await versions()).toEqual(before);
    expect(await org('rename', 'unknown', '--name', 'x')).toMatchObject({ code: 1, stdout: '' });
  });

  it('delete requires --yes without a terminal', async () => {
    expect(await org('delete', 'a')).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/cannot be restored.* fleetbook org delete a --yes\n$/),
    });
    expect(await org('delete', 'unknown')).toMatchObject({ code: 1, stdout: '' });
    expect(await scene.sql`select from organizations where deleted_at is not null`).toHaveLength(0);
  });

  it('delete revokes its tokens at once on each reader, and states its other effects', async () => {
    const tokens: string[] = [];
    for (let i = 0; i < 2; i++) tokens.push((await json('token', 'create', '--org', 'a')).token);
    const ofB = (await json('token', 'create', '--org', 'b')).token;
    reader = scene.reader();
    await reader.catalogue.providers();
    await until(() => reader.link.linked);
    for (const token of tokens) expect(await reader.tokens.verify(token)).toBeDefined();
    expect((await reader.clusters.clusters(sample.a)).body.identity.toString()).toContain('Ä’s');

    expect(await org('delete', 'a', '--yes')).toEqual({
      code: 0,
      stdout:
        'organization a is deleted: 1 cluster removed, 2 tokens revoked; its slug cannot be used again\n',
      stderr: '',
    });
    const refused = async () =>
      (await Promise.all(tokens.map((token) => reader.tokens.verify(token)))).every((grant) => !grant);
    await until(refused, { timeoutMs: 1000 });
    await until(async () => (await reader.clusters.clusters(sample.a)).body.identity.toString() === '[]');
    expect((await reader.clusters.clusters(sample.a)).tier).toBe('memory');
    const cold = scene.reader();
    for (const token of tokens) expect(await cold.tokens.verify(token)).toBeUndefined();
    expect((await cold.clusters.clusters(sample.b)).body.identity.toString()).toContain('of B alone');
    expect(await cold.tokens.verify(ofB)).toMatchObject({ organizationId: sample.b });
  });

  it('delete leaves a tombstone: its rows stay, its slug stays used, and no list contains it', async () => {
    expect(
      await scene.sql`select from clusters where retired_at is null and organization_id = ${sample.a}`,
    ).toEqual([]);
    expect(await scene.sql`select from clusters where organization_id = ${sample.a}`).toHaveLength(1);
    const slugs = (found: { slug: string }[]) => found.map(({ slug }) => slug);
    expect(slugs(await json('org', 'list'))).toEqual(['acme', 'b']);
    const all = await json('org', 'list', '--all');
    expect(slugs(all)).toEqual(['a', 'acme', 'b']);
    expect(all[0]).toMatchObject({ clusters: 0, tokens: 0, deletedAt: expect.stringMatching(/Z$/) });
    expect((await org('list', '--all')).stdout).toMatch(/^ORGANIZATION .* DELETED\na .* (?:s|min) ago\n/);
    const refused = await Promise.all(
      [
        ['org', 'create', 'a'],
        ['org', 'delete', 'a', '--yes'],
        ['org', 'rename', 'a', '--name', 'x'],
        ['token', 'create', '--org', 'a'],
        ['user', 'list', '--org', 'a'],
      ].map((args) => runCommand(args, env)),
    );
    for (const result of refused) expect(result).toMatchObject({ code: 1, stdout: '' });
    const [taken, ...unknown] = refused.map(({ stderr }) => stderr);
    expect(taken).toContain('Choose another');
    for (const stderr of unknown) {
      expect(stderr).toContain('or it is deleted');
      expect(stderr).not.toContain('org create a');
    }
    const states = (await json('token', 'list')).filter(
      (token: { organization: string }) => token.organization === 'a',
    );
    expect(states.map(({ state }: { state: string }) => state)).toEqual(['revoked', 'revoked']);
  });

  it('delete --json reports the same to a program, also while the cache is away', async () => {
    const away = { ...env, REDIS_URL: 'redis://127.0.0.1:1' };
    const { code, stdout } = await runCommand(['org', 'delete', 'b', '--yes', '--json'], away);
    expect({ code, report: JSON.parse(stdout) }).toEqual({
      code: 0,
      report: { id: sample.b, slug: 'b', name: 'b', clusters: 1, tokens: 1, published: false },
    });
  });
});

describe('the question before an organization is deleted', () => {
  async function answer(text: string): Promise<string> {
    const input = Object.assign(new PassThrough(), { isTTY: true });
    const output = new PassThrough();
    const confirmed = confirmSlug('acme', input, output);
    input.write(`${text}\n`);
    await confirmed;
    return String(output.read());
  }

  it('accepts exactly the slug', async () => {
    expect(await answer('acme')).toContain('Type its slug, acme, to continue');
  });

  it.each(['', 'y', 'yes', 'acm', 'ACME', 'acme2'])('treats %j as no', async (text) => {
    await expect(answer(text)).rejects.toThrow('nothing was deleted');
  });
});
