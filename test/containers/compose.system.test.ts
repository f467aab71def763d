import { execFile } from 'node:child_process';
import { copyFile, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, inject, it } from 'vitest';
import { inPackage } from '../../src/config/package.ts';
import { DOCKER, needs } from '../support/needs.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
const FLEETBOOK = ['migrate', 'api', 'worker'] as const;

/** Compose as a plugin of Docker, or as a separate program in older installations. */
async function compose(folder: string, ...args: readonly string[]): Promise<string> {
  const asPlugin = await run('docker', ['compose', 'version']).then(
    () => true,
    () => false,
  );
  const [program, first] = asPlugin ? ['docker', ['compose']] : ['docker-compose', []];
  return (await run(program, [...first, ...args], { cwd: folder })).stdout;
}

/** Compose's result for docker-compose.yml with this `.env`: the lines of each service. */
async function configured(env: string): Promise<Record<(typeof FLEETBOOK)[number], readonly string[]>> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-compose-'));
  await copyFile(inPackage('docker-compose.yml'), join(folder.path, 'docker-compose.yml'));
  await writeFile(join(folder.path, '.env'), env);
  const text = await compose(folder.path, 'config');
  const linesOf = (service: string) => {
    const [, found = ''] = new RegExp(`^  ${service}:\\n((?: {4}.*\\n)*)`, 'm').exec(text) ?? [];
    return found.split('\n').map((line) => line.trim().replaceAll(/['"]/g, ''));
  };
  return { migrate: linesOf('migrate'), api: linesOf('api'), worker: linesOf('worker') };
}

describe('docker-compose.yml', needs(inject('docker'), DOCKER), () => {
  it('each variable in .env reaches each container of Fleetbook', async () => {
    const env = {
      VULTR_URL: 'https://vultr.example',
      MEMORY_LIMIT: '128000000',
      ACME_TOKEN: 'of-a-file-of-sources',
    };
    const services = await configured(
      Object.entries(env)
        .map((pair) => `${pair.join('=')}\n`)
        .join(''),
    );
    for (const service of FLEETBOOK) {
      for (const [name, value] of Object.entries(env))
        expect(services[service], service).toContain(`${name}: ${value}`);
    }
  });

  it('the addresses of containers do not depend on .env', async () => {
    const services = await configured(
      'DATABASE_URL=postgres://localhost/mine\nPORT=4000\nHOST=127.0.0.1\nOPS_HOST=127.0.0.1\nREDIS_URL=redis://localhost\n',
    );
    for (const service of FLEETBOOK) {
      expect(services[service]).toEqual(
        expect.arrayContaining([
          'DATABASE_URL: postgres://fleetbook:fleetbook@postgres:5432/fleetbook',
          'QUEUE_REDIS_URL: redis://:fleetbook@queue-redis:6379',
          'CACHE_REDIS_URL: redis://:fleetbook@cache-redis:6379',
          'HOST: 0.0.0.0',
          'PORT: 3000',
          'OPS_HOST: 0.0.0.0',
          'OPS_PORT: 3001',
        ]),
      );
    }
  });

  it('both Redis come from .env, e.g. the nodes of the profile’s cluster', async () => {
    const url = 'redis+cluster://:fleetbook@cluster-1,cluster-2,cluster-3';
    const env = {
      CACHE_REDIS_URL: url,
      QUEUE_REDIS_URL: url,
      READER_DATABASE_URL: 'postgres://fleetbook:fleetbook@replica:5432/fleetbook',
    };
    const services = await configured(
      Object.entries(env)
        .map((pair) => `${pair.join('=')}\n`)
        .join(''),
    );
    for (const service of FLEETBOOK)
      for (const [name, value] of Object.entries(env))
        expect(services[service], service).toContain(`${name}: ${value}`);
  });

  it('the profiles start a cluster that is complete again after all addresses changed, and a streaming replica', {
    timeout: 300_000,
  }, async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-profiles-'));
    await copyFile(inPackage('docker-compose.yml'), join(folder.path, 'docker-compose.yml'));
    await writeFile(join(folder.path, '.env'), '');
    const project = [
      '-p',
      `fleetbook-profiles-${process.pid}`,
      '--profile',
      'cluster',
      '--profile',
      'replica',
    ];
    const act = (...args: readonly string[]) => compose(folder.path, ...project, ...args);
    const nodes = [1, 2, 3, 4, 5, 6].map((i) => `cluster-${i}`);
    const cli = (node: string, ...words: readonly string[]) => act('exec', '-T', node, 'redis-cli', ...words);
    const views = nodes
      .map(
        (node) =>
          `redis-cli -h ${node} cluster nodes; redis-cli -h ${node} cluster info | grep state; echo --`,
      )
      .join('; ');
    const isWhole = async () => {
      const infos = (await act('exec', '-T', 'cluster', 'sh', '-c', views)).trim().split('--').slice(0, -1);
      expect(infos).toHaveLength(nodes.length);
      return infos.every((info) => {
        const lines = info.trim().split('\n');
        // A node may know the whole cluster and not yet accept commands.
        if (lines.pop()?.trim() !== 'cluster_state:ok') return false;
        const ranges = lines.flatMap((line) => [...line.matchAll(/ (\d+)-(\d+)$/g)]);
        const slots = ranges.reduce((sum, [, from, to]) => sum + Number(to) - Number(from) + 1, 0);
        const replicas = lines.filter((line) => / (?:myself,)?slave /.test(line));
        return lines.length === 6 && slots === 16_384 && replicas.length === 3 && !info.includes('fail');
      });
    };
    const untilWhole = () =>
      until(isWhole, { timeoutMs: 60_000, everyMs: 500, what: 'all nodes to know all slots and replicas' });
    await using closing = new AsyncDisposableStack();
    closing.defer(async () => {
      await act('down', '--volumes', '--timeout', '2');
    });
    await act('up', '-d', 'replica', 'cluster', ...nodes);
    await untilWhole();
    expect(await cli('cluster-1', '-c', 'set', 'kept', 'yes')).toBe('OK\n');
    await act('down', '--timeout', '5');
    // In another order, so that addresses differ.
    await act('up', '-d', 'replica', 'cluster', ...nodes.toReversed());
    await untilWhole();
    expect(await cli('cluster-2', '-c', 'get', 'kept')).toBe('yes\n');

    const sql = (service: string, text: string) =>
      act('exec', '-T', service, 'psql', '-h', '/var/run/postgresql', '-wtAU', 'fleetbook', '-c', text);
    await sql('postgres', 'create table streamed as select 42 as n');
    await until(
      () =>
        sql('replica', 'select n from streamed').then(
          (text) => text === '42\n',
          () => false,
        ),
      {
        timeoutMs: 60_000,
        everyMs: 500,
        what: 'the replica to have what the primary has committed',
      },
    );
    expect(await sql('replica', 'select pg_is_in_recovery()')).toBe('t\n');
  });

  it('files of settings are in one folder of each container, which is empty by default', async () => {
    const given = await configured('CONFIG_FOLDER=./mine\nFLEETBOOK_CONFIG=/etc/fleetbook/sources.json\n');
    const none = await configured('');
    for (const service of FLEETBOOK) {
      const text = given[service].join('\n');
      expect(text).toMatch(
        /\/mine:\/etc\/fleetbook:ro|source: .*\/mine\ntarget: \/etc\/fleetbook\nread_only: true/,
      );
      expect(text).toContain('FLEETBOOK_CONFIG: /etc/fleetbook/sources.json');
      expect(none[service].join('\n')).toMatch(
        /no-files(:\/etc\/fleetbook:ro|\ntarget: \/etc\/fleetbook\nread_only: true)/,
      );
    }
  });

  it('metrics can be scraped in the network, and only the API’s port is published', async () => {
    const services = await configured('OPS_TOKEN=the-token-of-the-scraper-of-metrics\n');
    for (const service of ['api', 'worker'] as const) {
      expect(services[service]).toEqual(
        expect.arrayContaining(['OPS_TOKEN: the-token-of-the-scraper-of-metrics', '- 3001']),
      );
      const published = services[service].filter((line) => /^-.*:3001$|published: 3001/.test(line));
      expect(published).toEqual([]);
    }
  });
});
