import { type ChildProcess, execFile, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { messageOf } from '../../../src/processes/ipc.ts';

const MAIN = new URL('../../../src/dev/sample/main.ts', import.meta.url).pathname;

function killing(child: ChildProcess): Disposable & { readonly child: ChildProcess } {
  return { child, [Symbol.dispose]: () => void child.kill('SIGKILL') };
}

describe('the sample upstream as a process', () => {
  it('prints its URLs on standard output, answers, and ends cleanly on SIGTERM', async () => {
    const spawned = spawn(process.execPath, [MAIN], { stdio: ['ignore', 'pipe', 'inherit'] });
    using running = killing(spawned);
    const [line] = await once(createInterface(spawned.stdout), 'line');
    const urls = JSON.parse(line);
    expect((await fetch(urls.clustersUrl)).status).toBe(200);
    spawned.kill('SIGTERM');
    expect(await once(running.child, 'exit')).toEqual([0, null]);
    await expect(fetch(urls.clustersUrl)).rejects.toThrow('fetch failed');
  });

  it('reports its URLs to the process that started it, and ends with that process', async () => {
    using running = killing(fork(MAIN, { stdio: 'inherit', execArgv: [] }));
    const [message] = await once(running.child, 'message');
    expect(messageOf(message)?.fleetbook).toBe('ready');
    expect((await fetch(`${message.details.linodeUrl}/v4/regions`)).status).toBe(200);
    running.child.disconnect();
    expect(await once(running.child, 'exit')).toEqual([0, null]);
  });

  it('rejects an invalid SAMPLE_PORT by name', async () => {
    const env = { ...process.env, SAMPLE_PORT: '70000' };
    await expect(promisify(execFile)(process.execPath, [MAIN], { env })).rejects.toMatchObject({
      code: 2,
      stderr: 'SAMPLE_PORT must be a port from 0 to 65535; it is "70000"\n',
    });
  });
});
