import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { auditTable } from '../../src/cli/accounts/audit.ts';
import { readSince } from '../../src/cli/terminal/options.ts';
import { runCommand } from '../support/run-command.ts';
import { openCommandScene } from './scene.ts';

describe('audit', () => {
  const closing = new AsyncDisposableStack();
  let env: Record<string, string>;
  beforeAll(async () => {
    ({ env } = closing.use(await openCommandScene()));
  });
  afterAll(() => closing.disposeAsync());

  it('shows the changes of commands, with operator, address, time and reason', async () => {
    expect((await runCommand(['audit'], env)).stdout).toBe('no action is recorded\n');
    await runCommand(['org', 'create', 'acme', '--by', 'ada', '--reason', 'a new client'], env);
    const { id } = JSON.parse((await runCommand(['token', 'create', '--org', 'acme', '--json'], env)).stdout);
    await runCommand(['token', 'delete', String(id), '--by', 'bob'], env);
    const { stdout } = await runCommand(['audit', '--limit', '2'], env);
    const lines = stdout.split('\n');
    expect(lines[0]).toMatch(/^AT +BY +FROM +ACTION +SUBJECT +REASON +DETAILS$/);
    expect(lines[1]).toMatch(/^\d{4}-\d\d-\d\d [\d:]{8} +bob +cli \S+@\S+ +token\.revoke +token 1 +-$/);
    expect(lines[2]).toMatch(
      / \S+@\S+ +cli +token\.create +token 1 +- +scopes=\["machines:read","clusters:read"\] /,
    );
    expect(lines[3]).toBe('  … 1 more; see --all, or --limit <count>');
    const entries = JSON.parse((await runCommand(['audit', '--since', '1h', '--json'], env)).stdout);
    expect(entries.total).toBe(3);
    expect(entries.rows.at(-1)).toMatchObject({
      by: 'ada',
      how: 'cli',
      address: expect.stringMatching(/^\S+@\S+$/),
      action: 'organization.create',
      subject: { kind: 'organization', id: 'acme' },
      reason: 'a new client',
      details: { name: 'acme' },
    });
  });

  it('has the same filters as the console', async () => {
    const { rows } = JSON.parse(
      (
        await runCommand(
          ['audit', '--by', 'bob', '--action', 'token.revoke', '--subject', 'token:1', '--json'],
          env,
        )
      ).stdout,
    );
    expect(rows).toMatchObject([{ action: 'token.revoke', by: 'bob' }]);
    expect((await runCommand(['audit', '--subject', 'organization:acm'], env)).stdout).toBe(
      'no matching action is recorded\n',
    );
    expect(await runCommand(['audit', '--subject', 'Token 1'], env)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--subject "Token 1" is not a subject; use a kind or kind:id'),
    });
  });

  it('states the valid format of a time', async () => {
    expect(await runCommand(['audit', '--since', 'lately'], env)).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'fleetbook: --since "lately" is not a time; use e.g. 24h, 7d, 2026-01-31 or 2026-01-31T12:00:00Z\n',
    });
    expect((await runCommand(['audit', '--since', '2999-01-01'], env)).stderr).toContain('is in the future');
  });
});

it('accepts a time span before now or a date', () => {
  const now = new Date('2026-06-15T12:00:00Z');
  const since = (text: string) => readSince(text, now).toISOString();
  expect([since('7d'), since('24h'), since('30m'), since('2026-01-31')]).toEqual([
    '2026-06-08T12:00:00.000Z',
    '2026-06-14T12:00:00.000Z',
    '2026-06-15T11:30:00.000Z',
    '2026-01-31T00:00:00.000Z',
  ]);
});

it('removes control characters of a terminal from a table', () => {
  const record = {
    id: 1,
    at: '2026-01-01T00:00:00Z',
    by: 'eve\u001b[2J',
    how: 'console',
    tokenId: 7,
    address: '192.0.2.7',
    action: 'hold.reject',
    subject: { kind: 'batch', id: '1' },
    reason: 'two\nlines \u202eevil',
    details: { source: 'a\u0007b', none: null },
  } as const;
  const text = auditTable([record]);
  expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u);
  expect(text.split('\n')).toHaveLength(3);
  expect(text).toContain('console #7 192.0.2.7  hold.reject  batch 1');
});
