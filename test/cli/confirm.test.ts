import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { decider } from '../../src/cli/terminal/options.ts';
import { confirm } from '../../src/cli/terminal/terminal.ts';
import { readConfig } from '../../src/config/config.ts';

const confirmed = (answer: string, isTTY: boolean) => {
  const input = Object.assign(new PassThrough(), { isTTY });
  input.end(`${answer}\n`);
  return confirm('This drops batch 3.', 'nothing was decided', input, new PassThrough());
};

describe('a question', () => {
  it('requires a yes', async () => {
    for (const yes of ['yes', 'y', ' YES ']) await expect(confirmed(yes, true)).resolves.toBeUndefined();
    for (const no of ['', 'no', 'yesterday']) {
      await expect(confirmed(no, true)).rejects.toMatchObject({
        name: 'CommandFailure',
        message: 'nothing was decided',
      });
    }
  });

  it('is refused without a terminal', async () => {
    await expect(confirmed('yes', false)).rejects.toMatchObject({
      name: 'UsageFailure',
      message: 'nothing was decided, because there is no terminal to confirm; confirm with --yes',
    });
  });
});

describe('the operator', () => {
  const config = (env: Record<string, string>) =>
    readConfig({ DATABASE_URL: 'postgres://x', REDIS_URL: 'redis://x', ...env });

  it('is the one of the command, else FLEETBOOK_OPERATOR, else the user of the machine', () => {
    const set = config({ FLEETBOOK_OPERATOR: 'on-call' });
    expect(decider(set, { by: ' ada ', reason: 'cleanup' })).toMatchObject({ by: 'ada', reason: 'cleanup' });
    expect(decider(set, {})).toMatchObject({ by: 'on-call', reason: undefined });
    expect(decider(config({}), {}).by).toMatch(/^[^@]+@[^@]+$/);
    // The record has the process's user as well as the given name.
    expect(decider(set, { by: 'ada' })).toMatchObject({ how: 'cli', address: decider(config({}), {}).by });
    expect(() => decider(set, { reason: 'two\nlines' })).toThrow(/--reason must be one line/);
  });
});
