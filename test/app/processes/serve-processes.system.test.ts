/** `serve --processes`: the real program, real servers, processes that are killed. */
import { readFileSync } from 'node:fs';
import { Agent, get, type IncomingMessage } from 'node:http';
import { createServer } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore } from '../../../src/db/connection/connect.ts';
import { createToken } from '../../../src/db/tokens.ts';
import { identify } from '../../../src/dev/process-identity.ts';
import { mergeMetrics } from '../../../src/ops/merge-metrics.ts';
import { startChild } from '../../../src/processes/child-process.ts';
import { freePort } from '../../../src/processes/port.ts';
import { Supervisor } from '../../../src/processes/supervisor.ts';
import { addSample, type Sample } from '../../snapshot/rows.ts';
import { fleetbook } from '../../support/fleetbook.ts';
import { createDatabase, type TestDatabase } from '../../support/postgres.ts';
import { CLI, type Program, startProgram } from '../../support/program.ts';
import { startTestRedis } from '../../support/redis.ts';
import { runCommand } from '../../support/run-command.ts';
import { until } from '../../support/until.ts';
import { waitingForLocks } from '../../support/waiting.ts';

const OPS_TOKEN = 'the-operators-token-of-these-tests';

const opened = new AsyncDisposableStack();
let db: TestDatabase;
let settings: Record<string, string>;
let sample: Sample;
let token: string;

beforeAll(async () => {
  db = opened.use(await createDatabase());
  const redis = opened.use(await startTestRedis());
  await using store = openStore({ url: db.url, role: 'worker', connections: 1 });
  sample = await addSample(store.sql);
  const scopes = ['machines:read', 'clusters:read'] as const;
  token = (await createToken(store.db, { organizationId: sample.a, scopes })).token;
  settings = { DATABASE_URL: db.url, REDIS_URL: redis.url, OPS_TOKEN, LOG_LEVEL: 'error' };
});
afterAll(() => opened.disposeAsync());

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** One request, on a new connection unless an agent is given. */
function request(url: string, agent: Agent | false = false): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const sent = get(url, { agent, headers, timeout: 20_000 }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (body += chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
      );
      response.on('error', reject);
    });
    sent.on('timeout', () => sent.destroy(new Error('no answer within 20 s')));
    sent.on('error', reject);
  });
}

interface Serving extends AsyncDisposable {
  readonly program: Program;
  readonly url: string;
  /** Pids of the program's running processes. */
  pids(): number[];
  metrics(): Promise<string>;
}

/** Starts `serve` and waits until all its processes serve. */
async function serve(count: number): Promise<Serving> {
  const [port, opsPort] = [await freePort(), await freePort()];
  const program = await startProgram(CLI, ['serve', '--processes', String(count)], {
    env: { PATH: process.env.PATH, ...settings, PORT: String(port), OPS_PORT: String(opsPort) },
  });
  const metrics = async () => {
    const headers = { authorization: `Bearer ${OPS_TOKEN}` };
    return (await fetch(`http://127.0.0.1:${opsPort}/metrics`, { headers })).text();
  };
  try {
    await until(async () => series(await metrics(), 'fleetbook_serve_processes_ready') === count);
  } catch (error) {
    await program[Symbol.asyncDispose]();
    throw new Error(`serve did not get ready:\n${program.output()}`, { cause: error });
  }
  return {
    program,
    url: `http://127.0.0.1:${port}`,
    pids: () => childrenOf(program.pid),
    metrics,
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  };
}

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);

/** The sum of the series of that name whose labels contain the text. */
function series(text: string, name: string, labels = ''): number {
  let sum = 0;
  for (const line of text.split('\n')) {
    const match = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (match?.[1] === name && (match[2] ?? '').includes(labels)) sum += Number(match[3]);
  }
  return sum;
}

const answered = (text: string, route: string) =>
  series(text, 'fleetbook_http_requests_total', `route="${route}",method="GET",status="200"`);

describe('serve --processes', () => {
  it('answers from each process on one port, and one scrape has the sums of all', async () => {
    await using serving = await serve(3);
    expect(serving.pids()).toHaveLength(3);
    const answers = await Promise.all(Array.from({ length: 12 }, () => request(`${serving.url}/readyz`)));
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200));
    for (let i = 0; i < 9; i++) expect((await request(`${serving.url}/v1/clusters`)).status).toBe(200);
    const text = await serving.metrics();
    expect(answered(text, '/readyz')).toBe(12);
    expect(answered(text, '/v1/clusters')).toBe(9);
    expect(series(text, 'fleetbook_serve_processes')).toBe(3);
    expect(series(text, 'fleetbook_serve_processes_ready')).toBe(3);
    expect(series(text, 'nodejs_version_info', 'process="api"')).toBeGreaterThan(0);
    expect(text).toContain('process="api-primary"');
  });

  it('replaces a killed process, continues to answer, and loses no counts', async () => {
    await using serving = await serve(2);
    const before = serving.pids();
    for (let i = 0; i < 6; i++) await request(`${serving.url}/v1/clusters`);
    expect(answered(await serving.metrics(), '/v1/clusters')).toBe(6);

    let isOver = false;
    let good = 0;
    const failures: string[] = [];
    const clients = Promise.all(
      Array.from({ length: 3 }, async () => {
        while (!isOver) {
          await request(`${serving.url}/v1/clusters`).then(
            ({ status }) => (status === 200 ? good++ : failures.push(String(status))),
            (error: Error) => failures.push(error.message),
          );
        }
      }),
    );
    const [killed = 0] = before;
    await until(() => good > 3);
    process.kill(killed, 'SIGKILL');
    const goodAtDeath = good;
    await until(() => serving.pids().length === 1);
    const lost = failures.length;
    await until(() => good > goodAtDeath + 10);
    await until(
      async () => series(await serving.metrics(), 'fleetbook_serve_processes_replaced_total') === 1,
    );
    await until(async () => series(await serving.metrics(), 'fleetbook_serve_processes_ready') === 2);
    isOver = true;
    await clients;
    // Once its death is detected, nothing is lost except the requests that were waiting.
    expect(failures.length - lost).toBeLessThanOrEqual(3);
    expect(serving.pids()).toHaveLength(2);
    expect(serving.pids()).not.toContain(killed);
    // The sum may only lack its answers since the last scrape.
    expect(answered(await serving.metrics(), '/v1/clusters')).toBeGreaterThanOrEqual(6);
  });

  it('on SIGTERM finishes all active requests, announces the end of the connections, and ends', async () => {
    await using serving = await serve(2);
    // Both have their connections to PostgreSQL and know the token: the kernel distributes connections randomly.
    for (let i = 0; i < 16; i++) await request(`${serving.url}/v1/clusters`);
    await using store = openStore({ url: db.url, role: 'owner', connections: 3 });
    const release = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const lock = store.sql.begin(async (tx) => {
      await tx`lock table regions in access exclusive mode`;
      locked.resolve();
      await release.promise;
    });
    await locked.promise;
    using agent = new KeptAgent();
    const path = `/v1/machines?provider=${sample.provider}&region=${sample.region}`;
    const underWay = Promise.all(Array.from({ length: 16 }, () => request(serving.url + path, agent.agent)));
    // Checked where it is awaited: a wait before that may fail.
    underWay.catch(() => {});
    await until(async () => (await waitingForLocks(store.sql)) >= 2);
    // Connections are accepted in order: earlier ones are accepted once these are answered.
    await Promise.all(Array.from({ length: 16 }, () => request(`${serving.url}/healthz`)));
    serving.program.child.kill('SIGTERM');
    await until(() =>
      request(`${serving.url}/healthz`).then(
        () => false,
        (error: NodeJS.ErrnoException) => error.code === 'ECONNREFUSED',
      ),
    );
    release.resolve();
    await lock;
    for (const answer of await underWay) {
      expect(answer).toMatchObject({ status: 200, headers: { connection: 'close' } });
      expect(JSON.parse(answer.body)).toHaveLength(2);
    }
    expect(await serving.program.exited).toEqual({ code: 0, signal: null });
    expect(serving.program.output()).toBe('');
  });

  it('leaves no process when it is killed itself', async () => {
    await using serving = await serve(2);
    const pids = serving.pids();
    serving.program.child.kill('SIGKILL');
    await until(() => pids.every((pid) => identify(pid) === undefined));
    expect(
      await until(() =>
        request(`${serving.url}/healthz`).catch(({ code }: NodeJS.ErrnoException) => code === 'ECONNREFUSED'),
      ),
    ).toBe(true);
  });

  it('reports in one line that the port is in use, and exits with 1', async () => {
    const taken = createServer();
    const port = await new Promise<number>((resolve) => {
      taken.listen(0, '127.0.0.1', () => resolve((taken.address() as { port: number }).port));
    });
    try {
      const result = await fleetbook(['serve', '--processes', '3'], { ...settings, PORT: String(port) });
      expect(result).toEqual({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(
          `^fleetbook: port ${port} is used by another program; stop that program, or set another port, e\\.g\\. PORT=\\d+\n$`,
        ),
      });
    } finally {
      taken.close();
    }
  });

  it('reports in one line what its processes lack', async () => {
    const { DATABASE_URL: _, ...rest } = settings;
    const { code, stderr } = await fleetbook(['serve', '--processes', '2'], rest);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/^fleetbook: DATABASE_URL is not set; .*\n$/);
  });

  it.each(['0', 'many', '257', '-1', '1.5', ''])('rejects %j as a count', async (value) => {
    const { code, stderr } = await runCommand(['serve', `--processes=${value}`], settings);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: `fleetbook: --processes must be a count from 1 to 256, or max for one on each core; it is ${JSON.stringify(value)}\n`,
    });
  });

  it('names the setting if it is wrong', async () => {
    const { code, stderr } = await runCommand(['serve'], { ...settings, PROCESSES: 'all' });
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/^fleetbook: PROCESSES must be a count .*; it is "all"\n$/),
    });
  });
});

it('a parent, such as `up`, starts several processes by the setting and receives the metrics of all', async () => {
  await using processes = new Supervisor({ log: pino({ level: 'silent' }) });
  const env = {
    PATH: process.env.PATH,
    ...settings,
    PROCESSES: '2',
    PORT: String(await freePort()),
    FLEETBOOK_OPS_BY_PARENT: '1',
  };
  const { port } = await processes.start('serve', () => startChild({ script: CLI, args: ['serve'], env }));
  for (let i = 0; i < 4; i++) await request(`http://127.0.0.1:${port}/v1/providers`);
  const text = await mergeMetrics(await processes.metrics(2000));
  expect(answered(text, '/v1/providers')).toBe(4);
  expect(series(text, 'fleetbook_serve_processes_ready')).toBe(2);
});

/** Connections that stay open until the end of the block. */
class KeptAgent implements Disposable {
  readonly agent = new Agent({ keepAlive: true });
  [Symbol.dispose](): void {
    this.agent.destroy();
  }
}
