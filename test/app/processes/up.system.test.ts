import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { identify } from '../../../src/dev/process-identity.ts';
import { startSampleUpstream } from '../../../src/dev/sample/upstream.ts';
import { freePort } from '../../../src/processes/port.ts';
import { missingPart, pageExamples, pageTag, readmeAnswers } from '../../cli/page-examples.ts';
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';
import { fleetbook } from '../../support/fleetbook.ts';
import { hasRecorded, type Payloads, RECORDED, WRITTEN } from '../../support/payloads.ts';
import { hetznerPricing, linodePrices } from '../../support/provider-answers.ts';
import { until } from '../../support/until.ts';
import { startUp, temporaryHome, type Up } from '../../support/up.ts';

interface Provider {
  id: number;
  name: string;
  regions: { id: number; name: string; code: string }[];
}
interface Machine {
  id: number;
  name: string;
}

/** A server that replays answers of Hetzner and Linode. */
async function replay(payloads: Payloads): Promise<FakeUpstream> {
  const upstream = await fakeUpstream();
  const answers: [path: string, query: Record<string, string>, file: string][] = [
    ['/v1/locations', { page: '1', per_page: '50' }, 'hetzner/locations.json'],
    ['/v1/server_types', { page: '1', per_page: '50' }, 'hetzner/server_types.json'],
    ['/v4/linode/types', { page: '1' }, 'linode/types.json'],
    ['/v4/regions', { page: '1' }, 'linode/regions.json'],
    ...payloads
      .availability()
      .map((file, index): [string, Record<string, string>, string] => [
        '/v4beta/regions/availability',
        { page: String(index + 1) },
        file,
      ]),
  ];
  for (const [path, query, file] of answers) {
    upstream.expect({ path, query, times: 'any' }, payloads.raw(file));
  }
  hetznerPricing(upstream);
  linodePrices(upstream);
  return upstream;
}

/** All machines in the API, by provider name. */
async function published(up: Up): Promise<Map<string, Machine[]>> {
  const found = new Map<string, Machine[]>();
  for (const provider of (await up.json('/v1/providers')) as Provider[]) {
    const machines: Machine[] = [];
    for (const region of provider.regions) {
      machines.push(
        ...((await up.json(`/v1/machines?provider=${provider.id}&region=${region.id}`)) as Machine[]),
      );
    }
    found.set(provider.name, machines);
  }
  return found;
}

async function takenPort(): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.close();
    },
  };
}

async function redisPid(port: number): Promise<number> {
  const { readdirSync, readFileSync } = await import('node:fs');
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const command = readFileSync(`/proc/${entry}/cmdline`, 'utf8');
      if (/(redis|valkey)-server/.test(command) && command.includes(`:${port}`)) return Number(entry);
    } catch {}
  }
  throw new Error(`no Redis on port ${port}`);
}

/** Checks the examples of README and docs/api.md. Ids are the same at each first start. */
async function answersAsThePagesShow(up: Up): Promise<void> {
  const examples = pageExamples();
  expect(examples.map(({ path }) => path)).toContain('/v1/machines/13/prices');
  for (const answer of readmeAnswers()) expect(answer.length, answer).toBeLessThanOrEqual(200);
  for (const { path, answer } of examples) {
    expect(missingPart(answer, await (await up.get(path)).text()), path).toBeUndefined();
  }
  const cluster = await up.get('/v1/clusters/cluster-test');
  expect(cluster.headers.get('etag')).toBe(pageTag());
}

describe('fleetbook up', () => {
  it('shows the sample, answers the same after Redis is killed, stops completely, and finds its data again', async () => {
    await using home = await temporaryHome();
    const paths: string[] = [];
    const before = new Map<string, string>();
    let token: string;
    let operatorToken: string;
    {
      await using up = await startUp(home.path);
      token = up.token;
      operatorToken = up.operatorToken;
      const providers = (await up.json('/v1/providers')) as Provider[];
      expect(providers.map(({ name }) => name)).toEqual(['Hetzner', 'Linode']);
      await answersAsThePagesShow(up);
      expect(await up.json('/v1/databases?engine=postgresql&limit=1')).toMatchObject({
        databases: [{ name: 'g6-nanode-1', nodes: 1, price_per_month: 15, provider: { name: 'Linode' } }],
      });
      const hetzner = providers.find(({ name }) => name === 'Hetzner');
      for (const region of hetzner?.regions ?? [])
        paths.push(`/v1/machines?provider=${hetzner?.id}&region=${region.id}`);
      const [machine] = ((await up.json(paths[0] ?? '')) as Machine[]) ?? [];
      paths.push('/v1/providers', `/v1/machines/${machine?.id}`, `/v1/machines/${machine?.id}/prices`);
      paths.push(
        '/v1/clusters',
        '/v1/clusters/cluster-test',
        '/v1/clusters/unknown-has-this',
        '/v1/machines/2147483647',
      );
      paths.push('/v1/machines?provider=1&region=x', '/openapi.json');

      const answer = async (path: string) => {
        const response = await up.get(path, { 'x-request-id': 'same' });
        return `${response.status} ${response.headers.get('etag')} ${await response.text()}`;
      };
      // Some are in the reader's memory when Redis dies, and some are not.
      for (const path of paths.slice(3)) before.set(path, await answer(path));
      const pid = await redisPid(up.redisPort);
      process.kill(pid, 'SIGKILL');
      await until(() => identify(pid) === undefined);
      for (const [path, expected] of before) expect(await answer(path), path).toBe(expected);
      for (const path of paths.slice(0, 3)) expect(await answer(path), path).toMatch(/^200 "/);
      await until(
        async () => ((await up.json('/readyz')) as { checks: { cache: string } }).checks.cache === 'ok',
        {
          what: 'the restarted Redis to be linked again',
        },
      );
      await until(() =>
        /"msg":"Redis was ended by SIGKILL; the supervisor restarts it"\}\n[\s\S]*"msg":"Redis runs again"\}\n/.test(
          up.output(),
        ),
      );
      for (const [path, expected] of before) expect(await answer(path), path).toBe(expected);

      const metrics = await fetch(`${up.opsUrl}/metrics`, {
        headers: { authorization: `Bearer ${up.operatorToken}` },
      });
      const text = await metrics.text();
      expect(text).toContain('fleetbook_sync_runs_total{source="hetzner",outcome="changed"');
      expect(text).toMatch(/fleetbook_published_documents_total\{process="worker"\} [1-9]/);
      expect(text).toMatch(/fleetbook_http_requests_total\{.*route="\/v1\/clusters"/);
      expect((await fetch(`${up.opsUrl}/metrics`)).status).toBe(401);

      const migrated = await fleetbook(['migrate'], { FLEETBOOK_HOME: `${home.path}/.fleetbook` });
      expect(migrated.stdout).toMatch(
        /^database fleetbook at 127\.0\.0\.1:\d+ is up to date: nothing to do\n$/,
      );
      const other = await fleetbook(['status'], { FLEETBOOK_HOME: `${home.path}/.fleetbook` });
      expect(other).toMatchObject({ code: 0, stderr: '' });
      expect(other.stdout).toMatch(/^hetzner .* changed .*\n/m);
      expect(await up.interrupt()).toBe(0);
      const alone = await fleetbook(['status'], { FLEETBOOK_HOME: `${home.path}/.fleetbook` });
      expect(alone).toMatchObject({ code: 2, stderr: expect.stringContaining('DATABASE_URL is not set') });
    }
    await using again = await startUp(home.path);
    expect(again.token).toBe(token);
    expect(again.operatorToken).toBe(operatorToken);
    for (const [path, expected] of before) {
      const response = await again.get(path, { 'x-request-id': 'same' });
      expect(`${response.status} ${response.headers.get('etag')} ${await response.text()}`, path).toBe(
        expected,
      );
    }
  }, 180_000);

  it('serves the catalogues of Hetzner and Linode within the limits, the recorded ones where they exist', async () => {
    const [payloads, hetzner, linode] = hasRecorded ? [RECORDED, 84, 19] : [WRITTEN, 5, 3];
    await using home = await temporaryHome();
    await using upstream = await replay(payloads);
    await using up = await startUp(home.path, {
      HETZNER_URL: upstream.url,
      LINODE_URL: upstream.url,
      CATALOGUE_RATES: 'EUR:1.08',
    });
    const machines = await published(up);
    expect(machines.get('Hetzner')).toHaveLength(hetzner);
    expect(new Set(machines.get('Linode')?.map(({ name }) => name)).size).toBe(linode);
    expect([...machines.keys()]).toEqual(['Hetzner', 'Linode']);
    expect(await up.json('/v1/clusters')).toEqual([]);
  }, 240_000);

  it('is ready although a source cannot be read, and names it with the reason', async () => {
    await using home = await temporaryHome();
    await using up = await startUp(home.path, { LINODE_URL: 'http://127.0.0.1:1' });
    expect(up.output()).toMatch(/linode: failed: .*127\.0\.0\.1:1/);
    expect(await up.json('/v1/providers')).toEqual([]);
  }, 240_000);

  it('shows the remedy if the organization of all clusters does not exist', async () => {
    await using home = await temporaryHome();
    await using sample = await startSampleUpstream();
    await using up = await startUp(home.path, {
      CLUSTERS_URL: sample.clustersUrl,
      CATALOGUE_RATES: 'EUR:1.1',
    });
    expect(up.output()).toMatch(
      /^clusters: 0 clusters, .*\n {2}5 unknown_organization: organization "sample" does not exist; create it with: fleetbook org create sample/m,
    );
  }, 240_000);

  it('names the settings of all ports that are in use at once, and starts nothing', async () => {
    await using home = await temporaryHome();
    await using first = await takenPort();
    await using second = await takenPort();
    const ports = { PORT: String(first.port), OPS_PORT: String(second.port) };
    const { code, stderr, stdout } = await fleetbook(['up'], { ...ports, FLEETBOOK_HOME: home.path });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    const lines = stderr.trimEnd().split('\n');
    expect(lines).toEqual([
      expect.stringMatching(
        new RegExp(`^fleetbook: port ${first.port} is used by another program; .* PORT=\\d+$`),
      ),
      expect.stringMatching(
        new RegExp(`^fleetbook: port ${second.port} is used by another program; .* OPS_PORT=\\d+$`),
      ),
    ]);
  });

  it('says in one line that there is no network for --live, and starts nothing', async () => {
    await using home = await temporaryHome();
    const FLEETBOOK_HOME = `${home.path}/new`;
    const noNames = new URL('programs/no-names.mjs', import.meta.url).href;
    const offline = { FLEETBOOK_HOME, NODE_OPTIONS: `--import=${noNames}` };
    expect(await fleetbook(['up', '--live'], offline)).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'fleetbook: there is no network: no name of a public provider resolves; connect this machine, or start the sample without --live\n',
    });
    expect(existsSync(FLEETBOOK_HOME)).toBe(false);
  });

  it('shares its settings with commands, including those of the file of sources, and is found by a second one', async () => {
    await using home = await temporaryHome();
    const file = `${home.path}/sources.json`;
    writeFileSync(
      file,
      JSON.stringify({
        catalogues: [{ id: 'acme', adapter: 'hetzner', url: 'http://127.0.0.1:1', tokenEnv: 'ACME_SECRET' }],
        alerts: { webhooks: [{ id: 'ops', urlEnv: 'ACME_HOOK' }] },
      }),
    );
    const given = { ACME_SECRET: 'x', ACME_HOOK: 'http://127.0.0.1:1', CATALOGUE_RATES: 'EUR:1.1' };
    await using up = await startUp(home.path, { FLEETBOOK_CONFIG: 'sources.json', ...given });
    const FLEETBOOK_HOME = `${home.path}/.fleetbook`;
    const { stdout } = await fleetbook(['doctor', '--json'], { FLEETBOOK_HOME });
    const { findings } = JSON.parse(stdout) as { findings: { check: string; verdict: string }[] };
    const problems = findings.filter(({ verdict }) => verdict !== 'ok').map(({ check }) => check);
    expect(problems).toEqual(['source acme']);

    const [, url = ''] = /PostgreSQL on port (\d+)/.exec(up.output()) ?? [];
    const { environment } = JSON.parse(readFileSync(`${FLEETBOOK_HOME}/live/running.json`, 'utf8'));
    expect(environment.DATABASE_URL).toContain(`:${url}/`);
    const named = await fleetbook(['doctor', '--json'], {
      FLEETBOOK_HOME,
      DATABASE_URL: environment.DATABASE_URL,
    });
    expect(JSON.parse(named.stdout).findings).toContainEqual(
      expect.objectContaining({ check: 'Redis', verdict: 'ok' }),
    );

    const notice = `Fleetbook already runs in ${FLEETBOOK_HOME} (process`;
    const second = await fleetbook(['up'], { FLEETBOOK_HOME, FLEETBOOK_CONFIG: file, ...given });
    expect(second).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(notice) });
    expect(second.stderr).toContain(` at ${up.url}, with the operators’ pages at ${up.opsUrl}. Stop it`);
    // The sample has another home, and the port is in use.
    const sample = await fleetbook(['up'], { FLEETBOOK_HOME, PORT: new URL(up.url).port });
    expect(sample).toMatchObject({ code: 1, stderr: expect.stringContaining(notice) });
  }, 240_000);
});

describe('npm start', () => {
  it.each([
    ['SIGTERM to npm', ['SIGTERM']],
    ['a Ctrl-C that npm repeats', ['SIGINT', 'SIGINT']],
  ] as const)('stops completely at %s', { timeout: 240_000 }, async (_, signals) => {
    await using home = await temporaryHome();
    const running = `${home.path}/sample/running.json`;
    const opsPort = await freePort();
    const child = spawn('npm', ['start'], {
      cwd: new URL('../../..', import.meta.url).pathname,
      env: {
        ...process.env,
        FLEETBOOK_HOME: home.path,
        PORT: String(await freePort()),
        OPS_PORT: String(opsPort),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A new process group, like that of a terminal.
      detached: true,
    });
    const pid = child.pid ?? expect.unreachable('npm has no process id');
    try {
      let output = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
      const exited = once(child, 'exit');
      await until(() => existsSync(running), { timeoutMs: 60_000, what: 'the start of its processes' });
      // The messages of alerts link to the console.
      const { environment } = JSON.parse(readFileSync(running, 'utf8'));
      expect(environment.OPS_URL).toBe(`http://127.0.0.1:${opsPort}`);
      for (const signal of signals) {
        process.kill(pid, signal);
        await Promise.race([exited, until(() => output.includes('\nstopping\n'))]);
      }
      await exited;
      expect(output).toMatch(/\nstopping\n/);
      expect(existsSync(running)).toBe(false);
      expect(existsSync(`${home.path}/sample/up.lock`)).toBe(false);
    } finally {
      endGroup(pid);
    }
  });
});

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {}
}
