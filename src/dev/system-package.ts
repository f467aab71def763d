import { execFile } from 'node:child_process';
import { chmodSync, existsSync, rmSync, writeFileSync } from 'node:fs';

const POLICY = '/usr/sbin/policy-rc.d';

type Find = (program: string) => string | undefined;

/** Installs a package, whose service stays stopped and disabled. Returns the output of a failed apt-get. */
export type Install = (name: string) => Promise<string | undefined>;

export function installer(find: Find): Install | undefined {
  const apt = find('apt-get');
  if (apt === undefined || process.getuid?.() !== 0) return undefined;
  return async (name) => {
    const failure = await withoutStartingServices(() => install(apt, name));
    if (failure === undefined) await disableService(find, name);
    return failure;
  };
}

/** Prevents the start of new services with Debian's policy file. An existing policy stays. */
async function withoutStartingServices<T>(act: () => Promise<T>): Promise<T> {
  if (existsSync(POLICY)) return act();
  writeFileSync(POLICY, '#!/bin/sh\nexit 101\n');
  chmodSync(POLICY, 0o755);
  const remove = () => rmSync(POLICY, { force: true });
  process.once('exit', remove);
  try {
    return await act();
  } finally {
    remove();
    process.off('exit', remove);
  }
}

async function install(apt: string, name: string): Promise<string | undefined> {
  const quiet = ['-o', 'DPkg::Lock::Timeout=120', '-qq'];
  const wanted = [...quiet, 'install', '--yes', '--no-install-recommends', name];
  if ((await run(apt, wanted)).isDone) return undefined;
  // The package lists may be missing or out of date.
  const update = await run(apt, [...quiet, 'update']);
  const again = await run(apt, wanted);
  return again.isDone ? undefined : `${update.output}${again.output}`;
}

async function disableService(find: Find, name: string): Promise<void> {
  const systemctl = existsSync('/run/systemd/system') ? find('systemctl') : undefined;
  if (systemctl !== undefined) {
    await run(systemctl, ['disable', '--now', `${name}.service`]);
    return;
  }
  const [updateRc, service] = [find('update-rc.d'), find('service')];
  if (updateRc !== undefined) await run(updateRc, [name, 'disable']);
  if (service !== undefined) await run(service, [name, 'stop']);
}

function run(program: string, args: readonly string[]): Promise<{ isDone: boolean; output: string }> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', NEEDRESTART_MODE: 'l', LC_ALL: 'C.UTF-8' };
  return new Promise((resolve) => {
    const child = execFile(program, args, { env, maxBuffer: Infinity }, (error, stdout, stderr) => {
      const why = typeof error?.code === 'string' ? `${error.message}\n` : '';
      resolve({ isDone: error === null, output: `${stdout}${stderr}${why}`.slice(-4_000) });
    });
    // A package's script must not wait for an answer.
    child.stdin?.end();
  });
}
