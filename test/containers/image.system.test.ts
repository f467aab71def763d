/** The image as users run it: read-only, without capabilities, next to PostgreSQL and Redis from their official images. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { DOCKER, needs } from '../support/needs.ts';
import { until } from '../support/until.ts';
import { POSTGRES_IMAGE, REDIS_IMAGE } from './images.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const IMAGE = process.env.FLEETBOOK_TEST_IMAGE || 'fleetbook:local';
const MB = 1_000_000;

const docker = async (...args: readonly string[]) =>
  (await run('docker', [...args], { maxBuffer: 64 * MB })).stdout.trim();
const shell = async (command: string) =>
  (await run('sh', ['-c', command], { maxBuffer: 64 * MB })).stdout.trim();
const isBuilt = await docker('image', 'inspect', IMAGE).then(
  () => true,
  () => false,
);
const NEEDED = isBuilt ? DOCKER : `the image ${IMAGE}: docker build -t ${IMAGE} .`;

/** The engine creates these files in each container, empty. */
const OF_THE_ENGINE = ['.dockerenv', 'dev/console', 'etc/hostname', 'etc/hosts', 'etc/resolv.conf'];
/** Restrictions of docker-compose.yml. */
const RESTRICTED = ['--read-only', '--tmpfs=/tmp', '--cap-drop=ALL', '--security-opt=no-new-privileges'];

describe('the content of the image', needs(inject('docker') && isBuilt, NEEDED), () => {
  it('states user, command, health check and labels', async () => {
    const [{ Config: config }] = JSON.parse(await docker('image', 'inspect', IMAGE));
    const { version, license } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    expect(config).toMatchObject({
      User: '1000:1000',
      Entrypoint: ['node', '/app/dist/src/cli.js'],
      Cmd: ['serve'],
      Healthcheck: { Test: ['CMD', 'node', '/app/healthcheck.mjs'] },
      ExposedPorts: { '3000/tcp': {} },
      Labels: {
        'org.opencontainers.image.title': 'Fleetbook',
        'org.opencontainers.image.description': expect.stringContaining('JSON API'),
        'org.opencontainers.image.licenses': license,
        'org.opencontainers.image.vendor': 'Fleetbook',
        'org.opencontainers.image.version': expect.stringMatching(new RegExp(`^(${version}|unreleased)$`)),
        'org.opencontainers.image.revision': expect.stringMatching(/^([0-9a-f]{40}|unknown)$/),
        'org.opencontainers.image.created': expect.any(String),
        'org.opencontainers.image.source': expect.any(String),
      },
    });
    expect(config.Env.filter((line: string) => /CERT|_CA=|TOKEN|PASSWORD/.test(line))).toEqual([]);
  });

  it('has one program, and its user may change no file', async () => {
    const container = await docker('create', IMAGE);
    try {
      const lines = (await shell(`docker export ${container} | tar --numeric-owner -tvf -`)).split('\n');
      const files = lines.map((line) => {
        const [mode = '', owner = '', , , , path = ''] = line.split(/\s+/);
        return { mode, owner, path };
      });
      expect(files.length).toBeGreaterThan(500);
      const outside = files.filter(({ mode, path }) => mode.startsWith('-') && !path.startsWith('app/'));
      const programs = outside.filter(({ mode }) => mode.includes('x')).map(({ path }) => path);
      const notLibraries = programs.filter((path) => !/\/[\w+-]+\.so(\.\d+)*$/.test(path));
      expect(notLibraries.filter((path) => !OF_THE_ENGINE.includes(path))).toEqual(['usr/local/bin/node']);
      const names = new Set(files.map(({ path }) => path.split('/').at(-1)));
      const tools = [
        'sh',
        'bash',
        'busybox',
        'npm',
        'npx',
        'yarn',
        'corepack',
        'apt',
        'apt-get',
        'dpkg',
        'apk',
      ];
      expect(tools.filter((name) => names.has(name))).toEqual([]);
      const writable = files.filter(
        ({ mode, owner, path }) =>
          !mode.startsWith('l') &&
          path !== 'tmp/' &&
          (owner !== '0/0' || mode[8] === 'w' || /s/i.test(mode.slice(3, 7))),
      );
      expect(writable).toEqual([]);
      expect(files.map(({ path }) => path)).toContain('var/lib/dpkg/status.d/libc6');
    } finally {
      await docker('rm', container);
    }
  });

  it('takes at most 120 MB, compressed', async () => {
    // The fastest level: registries compress better.
    const bytes = Number(await shell(`docker save ${IMAGE} | gzip -1 | wc -c`));
    expect(bytes).toBeGreaterThan(20 * MB);
    expect(bytes).toBeLessThanOrEqual(120 * MB);
  });

  it('has no PostgreSQL for `up`, and states the remedy', async () => {
    const up = docker('run', '--rm', ...RESTRICTED, IMAGE, 'up');
    await expect(up).rejects.toMatchObject({
      stderr: expect.stringContaining('give DATABASE_URL of a PostgreSQL server'),
    });
  });
});

describe('containers of the image', needs(inject('docker') && isBuilt, NEEDED), () => {
  const cleanUp = new AsyncDisposableStack();
  afterAll(() => cleanUp.disposeAsync());
  const network = `fleetbook-image-${process.pid}`;
  const OPS_TOKEN = 'the-token-of-this-test-of-the-image';
  const environment = (database: string, index: number) => [
    `--env=DATABASE_URL=postgres://fleetbook:secret@${network}-postgres:5432/${database}`,
    `--env=REDIS_URL=redis://${network}-redis:6379/${index}`,
    `--env=OPS_TOKEN=${OPS_TOKEN}`,
    '--env=OPS_HOST=0.0.0.0',
  ];
  const FOR_ALL = [`--network=${network}`, ...RESTRICTED, ...environment('fleetbook', 0)];
  const once = (...command: readonly string[]) => docker('run', '--rm', ...FOR_ALL, IMAGE, ...command);

  /** Starts a container, and removes it at the end. */
  async function start(name: string, ...args: readonly string[]): Promise<string> {
    const container = `${network}-${name}`;
    await docker('run', '--detach', `--name=${container}`, ...args);
    cleanUp.defer(async () => void (await docker('rm', '--force', '--volumes', container)));
    return container;
  }

  const inspect = (container: string, format: string) =>
    docker('inspect', `--format={{${format}}}`, container);
  const logs = async (container: string) => {
    const { stdout, stderr } = await run('docker', ['logs', container], { maxBuffer: 64 * MB });
    return stdout + stderr;
  };
  const untilHealthy = (container: string) =>
    until(
      async () => {
        if ((await inspect(container, '.State.Running')) !== 'true') throw new Error(await logs(container));
        return (await inspect(container, '.State.Health.Status')) === 'healthy';
      },
      { timeoutMs: 90_000, everyMs: 200, what: `${container} to be healthy` },
    );
  const address = async (container: string, port = 3000) =>
    `http://${(await docker('port', container, `${port}/tcp`)).split('\n')[0]}`;

  /** Stops it as an orchestrator does. A process that ignores SIGTERM is killed, and its exit code is 137. */
  async function stop(container: string): Promise<number> {
    await docker('stop', '--time=30', container);
    return Number(await inspect(container, '.State.ExitCode'));
  }

  beforeAll(async () => {
    await docker('network', 'create', network);
    cleanUp.defer(async () => void (await docker('network', 'rm', network)));
    const secrets = ['--env=POSTGRES_USER=fleetbook', '--env=POSTGRES_PASSWORD=secret'];
    const postgres = await start('postgres', `--network=${network}`, ...secrets, POSTGRES_IMAGE);
    await start('redis', `--network=${network}`, REDIS_IMAGE);
    const ready = ['exec', postgres, 'pg_isready', '--host=127.0.0.1', '--username=fleetbook'];
    const isReady = () =>
      docker(...ready).then(
        () => true,
        () => false,
      );
    await until(isReady, { timeoutMs: 60_000, everyMs: 200, what: 'PostgreSQL to accept connections' });
    await once('migrate');
  });

  it('serve: an unprivileged node as process 1, healthy, and a graceful end', async () => {
    const serve = await start('serve', '--publish=127.0.0.1::3000', ...FOR_ALL, IMAGE, 'serve');
    await untilHealthy(serve);
    const [, process1 = ''] = (await docker('top', serve, '-o', 'uid,pid,args')).split('\n');
    expect(process1.trim()).toMatch(/^1000 +\d+ +node \/app\/dist\/src\/cli\.js serve$/);
    await once('org', 'create', 'acme');
    const [token] = /fb_\S+/.exec(await once('token', 'create', '--org', 'acme')) ?? [];
    const answer = await fetch(`${await address(serve)}/v1/providers`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect([answer.status, await answer.json()]).toEqual([200, []]);
    // A request that is open at the signal is answered.
    const changes = fetch(`${await address(serve)}/openapi.json`);
    expect(await stop(serve)).toBe(0);
    expect((await changes).status).toBe(200);
  });

  it('work: healthy, and a graceful end', async () => {
    const work = await start('work', ...FOR_ALL, IMAGE, 'work');
    await untilHealthy(work);
    expect(await stop(work)).toBe(0);
  });

  it('is not healthy while it cannot answer', async () => {
    const nowhere = [
      '--env=DATABASE_URL=postgres://f:f@127.0.0.1:1/f',
      '--env=REDIS_URL=redis://127.0.0.1:1',
    ];
    const soon = ['--health-interval=1s', '--health-start-period=1s'];
    const serve = await start('unhealthy', ...FOR_ALL, ...nowhere, ...soon, IMAGE, 'serve');
    await until(async () => (await inspect(serve, '.State.Health.Status')) === 'unhealthy', {
      timeoutMs: 90_000,
      everyMs: 200,
      what: 'the container to be unhealthy',
    });
    expect(await inspect(serve, '(index .State.Health.Log 0).Output')).toMatch(
      /port 3000 (answers|does not answer) \/readyz/,
    );
  });

  it('up: the sample catalogue through the servers that the settings name', async () => {
    const ports = ['--publish=127.0.0.1::3000', '--publish=127.0.0.1::3001'];
    const own = [`--network=${network}`, ...RESTRICTED, ...environment('postgres', 1)];
    const up = await start('up', ...ports, ...own, IMAGE, 'up');
    await untilHealthy(up);
    const token = await until(
      async () => /fleetbook ready \S+ token (fb_\S+)/.exec(await logs(up))?.[1] ?? false,
      {
        timeoutMs: 90_000,
        everyMs: 200,
        what: 'the line `fleetbook ready`',
      },
    );
    /** The first answers may be 503: the index of the search is built after the start. */
    const get = (path: string) =>
      until(
        async () => {
          const answer = await fetch((await address(up)) + path, {
            headers: { authorization: `Bearer ${token}` },
          });
          return answer.ok && answer.json();
        },
        { timeoutMs: 60_000, everyMs: 200, what: `an answer to ${path}` },
      );
    const providers = (await get('/v1/providers')) as {
      id: number;
      name: string;
      regions: { id: number }[];
    }[];
    const hetzner = providers.find(({ name }) => name === 'Hetzner');
    const machines = await get(`/v1/machines?provider=${hetzner?.id}&region=${hetzner?.regions[0]?.id}`);
    expect(machines).toContainEqual(expect.objectContaining({ price: expect.any(Number) }));
    expect(await get('/v1/clusters')).not.toEqual([]);
    expect(await get('/v1/machines/recommend?cpu=2&ram=4')).toMatchObject({
      recommendations: expect.any(Array),
    });
    expect((await fetch(`${await address(up, 3001)}/healthz`)).status).toBe(200);
    expect(await stop(up)).toBe(0);
  });
});
