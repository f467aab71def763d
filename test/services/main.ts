/**
 * `node test/services/main.ts --node <path>`: the built program (`npm run build`) on the given Node.js, with running servers:
 * DATABASE_URL, an empty database, and REDIS_URL. It migrates, syncs the sample, publishes and answers.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { startSampleUpstream } from '../../src/dev/sample/upstream.ts';
import { freePort } from '../../src/processes/port.ts';
import { until } from '../support/until.ts';

const ROOT = join(import.meta.dirname, '../..');
const PROGRAM = join(ROOT, 'dist/src/cli/bin.js');
const OPS_TOKEN = 'the-token-of-the-operators-of-this-test';

const { values } = parseArgs({ options: { node: { type: 'string', default: process.execPath } } });
const { DATABASE_URL, REDIS_URL } = process.env;
if (!DATABASE_URL || !REDIS_URL) give('set DATABASE_URL to an empty database, and REDIS_URL');
if (!existsSync(PROGRAM)) give('dist is missing; run: npm run build');
const env = { PATH: process.env.PATH, DATABASE_URL, REDIS_URL, OPS_TOKEN };

await using opened = new AsyncDisposableStack();
const version = await run(['--version']);
say(`Node ${(await promisify(execFile)(values.node, ['--version'])).stdout.trim()}, Fleetbook ${version}`);
await run(['migrate']);
say('migrated');
await run(['org', 'create', 'acme']);
const token = await run(['token', 'create', '--org', 'acme']);

const upstream = opened.use(await startSampleUpstream());
const [port, opsPort, workerPort] = [await freePort(), await freePort(), await freePort()];
const worker = start('work', { LINODE_URL: upstream.linodeUrl, OPS_PORT: String(workerPort) });
const reader = start('serve', { PORT: String(port), OPS_PORT: String(opsPort) });
const url = `http://127.0.0.1:${port}`;

interface Provider {
  readonly id: number;
  readonly name: string;
  readonly regions: readonly { readonly id: number }[];
}

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(url + path, { headers: { authorization: `Bearer ${token}`, ...headers } });

const provider = await until(
  async () => {
    for (const child of [worker, reader]) if (child.exitCode !== null) process.exit(1);
    const answer = await get('/v1/providers');
    return answer.ok && ((await answer.json()) as Provider[]).find(({ name }) => name === 'Linode');
  },
  { timeoutMs: 120_000, what: 'the provider of the sample' },
);
const list = `/v1/machines?provider=${provider.id}&region=${provider.regions[0]?.id}`;
const machines = await until(async () => {
  const found = (await (await get(list)).json()) as { readonly id: number; readonly price: number }[];
  return found.length > 0 && found;
});
say(`${machines.length} machines in the first region of ${provider.name}`);

await expectAnswer(list, 200);
await expectAnswer(`/v1/machines/${machines[0]?.id}`, 200);
await expectAnswer(`/v1/machines/${machines[0]?.id}/prices`, 200);
await expectAnswer('/v1/clusters', 200);
await expectAnswer('/v1/clusters/none', 404);
await expectAnswer('/v1/machines?provider=x', 400);
await expectAnswer('/v1/providers', 401, { authorization: 'Bearer fb_wrong' });
const etag = (await get(list)).headers.get('etag') ?? '';
await expectAnswer(list, 304, { 'if-none-match': etag });
await expectAnswer('/readyz', 200);
await expectAnswer('/openapi.json', 200);

for (const [name, child] of Object.entries({ worker, reader })) {
  child.kill('SIGTERM');
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) give(`the ${name} ended with ${code} after SIGTERM`);
}
say('worker and reader ended cleanly');

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function give(problem: string): never {
  process.stderr.write(`test:services: ${problem}\n`);
  process.exit(1);
}

async function run(args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(values.node, [PROGRAM, ...args], { env });
  return stdout.trim();
}

function start(command: string, more: Record<string, string>): ChildProcess {
  const child = spawn(values.node, [PROGRAM, command], {
    env: { ...env, ...more },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  opened.defer(() => void child.kill('SIGKILL'));
  return child;
}

async function expectAnswer(path: string, status: number, headers?: Record<string, string>): Promise<void> {
  const answer = await get(path, headers);
  if (answer.status !== status)
    give(`${path} answers ${answer.status} instead of ${status}: ${await answer.text()}`);
  say(`${status} ${path}`);
}
