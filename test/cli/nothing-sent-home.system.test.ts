/** Fleetbook sends nothing to its makers: a whole installation connects only to addresses of its configuration. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { startUp, temporaryHome } from '../support/up.ts';

const RECORDER = join(import.meta.dirname, 'programs/record-connections.ts');
const LOCAL = /^(name )?(127\.0\.0\.1|::1|localhost)(:\d+)?$|^\//;

interface Connection {
  readonly program: string;
  readonly to: string;
}

async function recording() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-connections-'));
  const file = join(folder.path, 'connections');
  return {
    env: { NODE_OPTIONS: `--import=${RECORDER}`, CONNECTIONS_FILE: file },
    connections: () =>
      readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Connection),
    [Symbol.asyncDispose]: () => folder.remove(),
  };
}

it('a start with the sample, its syncs, the API and the operators’ pages connect to this machine only', async () => {
  await using recorded = await recording();
  await using home = await temporaryHome();
  await using up = await startUp(home.path, recorded.env);
  const operator = { authorization: `Bearer ${up.operatorToken}` };
  for (const path of ['/v1/providers', '/v1/clusters', '/docs', '/openapi.json', '/readyz'])
    expect((await up.get(path)).status, path).toBe(200);
  for (const path of ['/api/overview', '/metrics', '/queues'])
    expect((await fetch(up.opsUrl + path, { headers: operator })).status, path).toBe(200);
  await up.interrupt();

  const connections = recorded.connections();
  expect(connections.filter(({ to }) => !LOCAL.test(to))).toEqual([]);
  // Each of its processes was recorded, so the list above is complete.
  const programs = new Set(connections.map(({ program }) => program));
  for (const part of [/ up$/m, /serve/, /work/, /sample/]) expect([...programs].join('\n')).toMatch(part);
});

it.each([
  ['a request', "await fetch('http://collector.invalid/').catch(() => {})", 'collector.invalid:80'],
  [
    'a connection with TLS',
    "(await import('node:tls')).connect(443, 'collector.invalid').on('error', () => {})",
    'collector.invalid:443',
  ],
  [
    'a lookup of a name',
    "await (await import('node:dns/promises')).lookup('collector.invalid').catch(() => {})",
    'name collector.invalid',
  ],
  [
    'a datagram',
    "const s = (await import('node:dgram')).createSocket('udp4'); s.send('x', 9, '127.0.0.9', () => s.close())",
    'udp 9 127.0.0.9',
  ],
])('%s to another address is recorded', async (_what, script, expected) => {
  await using recorded = await recording();
  await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
    env: { ...process.env, ...recorded.env },
  });
  const found = recorded.connections().filter(({ to }) => !LOCAL.test(to));
  expect(found.map(({ to }) => to).join('\n')).toContain(expected);
});
