import { mkdtempDisposable, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tokenOfCommand } from '../../../src/sources/credentials/command.ts';
import { SourceError } from '../../../src/sources/source.ts';
import { until } from '../../support/until.ts';

const SECRET = 'tok-8c1e-secret';
const NOW = Date.parse('2026-03-01T12:00:00Z');

const running = (script: string, deadlineMs?: number) =>
  tokenOfCommand([process.execPath, '-e', script, SECRET], 'GCP_TOKEN_COMMAND', {
    now: () => NOW,
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
  });
const printing = (output: unknown) =>
  running(
    `process.stdout.write(${JSON.stringify(typeof output === 'string' ? output : JSON.stringify(output))})`,
  );

async function failureOf(work: Promise<unknown>): Promise<SourceError> {
  const error = await work.catch((reason: unknown) => reason);
  if (!(error instanceof SourceError)) return expect.unreachable(`it gave ${JSON.stringify(error)}`);
  expect(error.message).not.toContain(SECRET);
  expect(JSON.stringify(error)).not.toContain(SECRET);
  expect(error.message).toContain('GCP_TOKEN_COMMAND');
  return error;
}

describe('a credential command', () => {
  it.each<[string, unknown, number | undefined]>([
    ['only the token', `${SECRET}\n`, undefined],
    ['a token and its expiry', { token: SECRET, expiry: '2026-03-01T13:00:00Z' }, 3_600_000],
    ['a token without expiry', { token: SECRET }, undefined],
    ['an expired token', { token: SECRET, expiry: '2026-03-01T11:00:00+00:00' }, 0],
    [
      'the ExecCredential of a kubectl plugin',
      {
        kind: 'ExecCredential',
        apiVersion: 'client.authentication.k8s.io/v1',
        status: { token: SECRET, expirationTimestamp: '2026-03-01T12:10:00Z' },
      },
      600_000,
    ],
    [
      'the answer of an OAuth server',
      { access_token: SECRET, expires_in: '3599', token_type: 'Bearer' },
      3_599_000,
    ],
    [
      'the output of az account get-access-token',
      { accessToken: SECRET, expiresOn: '2026-03-01 14:00:00.000000', expires_on: NOW / 1000 + 120 },
      120_000,
    ],
  ])('may print %s', async (_, output, lifetimeMs) => {
    expect(await printing(output)).toEqual({ token: SECRET, lifetimeMs });
  });

  it.each<[string, unknown]>([
    ['nothing', ''],
    ['two words', 'not logged in'],
    ['broken JSON', '{"token": '],
    ['JSON without a token', { secret: SECRET }],
    ['an empty token', { token: '' }],
    ['an expiry that is not an instant', { token: SECRET, expiry: 'tomorrow' }],
  ])('that prints %s is misconfigured', async (_, output) => {
    const failed = await failureOf(printing(output));
    expect(failed).toMatchObject({
      kind: 'misconfigured',
      message: expect.stringContaining('neither a token'),
    });
  });

  it('with an error exit is retried, and its output is not repeated', async () => {
    const failed = await failureOf(running('console.error(process.argv[1]); process.exit(3)'));
    expect(failed).toMatchObject({ kind: 'retry', limitsAll: true });
    expect(failed.message).toContain('ended with 3; run it by hand');
  });

  it('that does not exist is misconfigured', async () => {
    const command = ['/nowhere/at-all', SECRET];
    const failed = await failureOf(tokenOfCommand(command, 'GCP_TOKEN_COMMAND'));
    expect(failed).toMatchObject({ kind: 'misconfigured', message: expect.stringContaining('(ENOENT)') });
  });

  it('with endless output is stopped', async () => {
    const failed = await failureOf(running('for (;;) process.stdout.write("x".repeat(65536))'));
    expect(failed).toMatchObject({ kind: 'misconfigured', message: expect.stringContaining('65536 bytes') });
  });

  it('that hangs is ended with all its child processes', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-command-'));
    const pidFile = join(folder.path, 'pid');
    // A grandchild keeps the output open, as the child of a script does.
    const script = `
      const child = require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' });
      require('node:fs').writeFileSync(${JSON.stringify(pidFile)}, String(child.pid));`;
    const failed = await failureOf(running(script, 5_000));
    expect(failed).toMatchObject({ kind: 'retry', message: expect.stringContaining('within 5000 ms') });
    const pid = Number(await readFile(pidFile, 'utf8'));
    await until(() => !isAlive(pid), { what: 'the grandchild has ended' });
  });

  it('gets its arguments unchanged, without a shell', async () => {
    const command = [process.execPath, '-e', 'process.stdout.write(process.argv[1])', '$(id);`id`'];
    expect(await tokenOfCommand(command, 'X')).toMatchObject({ token: '$(id);`id`' });
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
