import { execFile } from 'node:child_process';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { findProgram } from '../../src/processes/find-program.ts';
import { fleetbook } from '../support/fleetbook.ts';
import { runCommand } from '../support/run-command.ts';

/** Returns bash's suggestions for the last of these words. */
async function offered(script: string, ...words: string[]): Promise<string[]> {
  const program = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _fleetbook; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await promisify(execFile)('bash', ['-c', program, 'bash', script, ...words]);
  return stdout.split('\n').filter(Boolean);
}

describe('completion', () => {
  it('offers valid words in bash, command by command', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-completion-'));
    const script = join(folder.path, 'fleetbook.bash');
    const printed = await fleetbook(['completion', 'bash'], {});
    expect(printed).toMatchObject({ code: 0, stderr: '' });
    await writeFile(script, printed.stdout);
    expect(await offered(script, 'fleetbook', 'st')).toEqual(['status']);
    expect(await offered(script, 'fleetbook', 'hold', 'l')).toEqual(['list']);
    expect(await offered(script, 'fleetbook', 'hold', 'list', '--')).toEqual(['--json', '--all', '--help']);
    expect(await offered(script, 'fleetbook', 'token', 'create', '--or')).toEqual(['--org']);
    // A word that is not a command, such as a source's id, changes nothing.
    expect(await offered(script, 'fleetbook', 'sync', 'status', '--')).toEqual([
      '--json',
      '--reason',
      '--by',
      '--help',
    ]);
    expect(await offered(script, 'fleetbook', '')).toContain('completion');
  });

  it.each(['zsh', 'fish'])('prints a valid script for %s, if it is installed', async (shell) => {
    const { code, stdout } = await runCommand(['completion', shell]);
    expect(code).toBe(0);
    for (const command of ['status', 'hold', 'completion']) expect(stdout).toContain(command);
    if (findProgram(shell) === undefined) return;
    await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-completion-'));
    const script = join(folder.path, 'script');
    await writeFile(script, stdout);
    expect((await promisify(execFile)(shell, ['-n', script])).stderr).toBe('');
  });

  it('names the shells for an unknown one', async () => {
    expect(await runCommand(['completion', 'tcsh'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('use one of bash, zsh, fish'),
    });
  });
});
