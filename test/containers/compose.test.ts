import { execFile } from 'node:child_process';
import { copyFile, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { inPackage } from '../../src/config/package.ts';

const run = promisify(execFile);
const FLEETBOOK = ['migrate', 'api', 'worker'] as const;

/** Compose as a plugin of Docker, or as the program that it once was. */
async function compose(folder: string, ...args: readonly string[]): Promise<string> {
  const asPlugin = await run('docker', ['compose', 'version']).then(
    () => true,
    () => false,
  );
  const [program, first] = asPlugin ? ['docker', ['compose']] : ['docker-compose', []];
  return (await run(program, [...first, ...args], { cwd: folder })).stdout;
}

/** What Compose makes of docker-compose.yml beside this `.env`: the lines of each service. */
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

it('everything in .env reaches every container of Fleetbook, whatever it is called', async () => {
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

it('where the containers find each other does not depend on .env', async () => {
  const services = await configured(
    'DATABASE_URL=postgres://localhost/mine\nPORT=4000\nHOST=127.0.0.1\nOPS_HOST=127.0.0.1\nREDIS_URL=redis://localhost\n',
  );
  for (const service of FLEETBOOK) {
    expect(services[service]).toEqual(
      expect.arrayContaining([
        'DATABASE_URL: postgres://fleetbook:fleetbook@postgres:5432/fleetbook',
        'QUEUE_REDIS_URL: redis://queue-redis:6379',
        'CACHE_REDIS_URL: redis://cache-redis:6379',
        'HOST: 0.0.0.0',
        'PORT: 3000',
        'OPS_HOST: 0.0.0.0',
        'OPS_PORT: 3001',
      ]),
    );
  }
});

it('files that settings name are in one folder of every container, which is empty unless one is given', async () => {
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

it('metrics can be scraped in the network, and only the API is published', async () => {
  const services = await configured('OPS_TOKEN=for-the-scraper\n');
  for (const service of ['api', 'worker'] as const) {
    expect(services[service]).toEqual(expect.arrayContaining(['OPS_TOKEN: for-the-scraper', '- 3001']));
    const published = services[service].filter((line) => /^-.*:3001$|published: 3001/.test(line));
    expect(published).toEqual([]);
  }
});
