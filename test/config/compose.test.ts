/** Checks docker-compose.yml without a Docker engine; test/containers checks Compose itself. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ALL_SETTINGS } from '../../src/app/features.ts';
import { inPackage } from '../../src/config/package.ts';
import { readSettings } from '../../src/config/settings.ts';
import { redisAddress } from '../../src/domain/servers/redis-address.ts';

const FILE = readFileSync(inPackage('docker-compose.yml'), 'utf8');
/** Returns the lines below a key, one level in, e.g. of a service. */
function below(text: string, key: string): string {
  return new RegExp(`^( *)${key}:.*\\n((?:\\1 +.*\\n|\\n)*)`, 'm').exec(text)?.[2] ?? '';
}
const services = below(FILE, 'services');
const FIXED = ['DATABASE_URL', 'QUEUE_REDIS_URL', 'CACHE_REDIS_URL', 'HOST', 'PORT', 'OPS_HOST', 'OPS_PORT'];

it('each container of Fleetbook gets all of .env, with any name of a setting or a source’s variable', () => {
  expect(below(FILE, 'x-fleetbook')).toMatch(/^ {2}env_file: \[\.env\]$/m);
  for (const name of ['migrate', 'api', 'worker']) {
    const service = below(services, name);
    expect(service, name).toMatch(/^ {4}<<: \*fleetbook$/m);
    // A service's own `environment` would replace the shared one.
    expect(service, name).not.toContain('env_file');
  }
});

it('only the addresses of containers override .env', () => {
  const fixed = [...below(FILE, 'x-environment').matchAll(/^ {2}(\w+):/gm)].map(([, name]) => name);
  expect(fixed).toEqual(FIXED);
  expect(Object.keys(ALL_SETTINGS)).toEqual(expect.arrayContaining(FIXED));
  for (const name of ['migrate', 'api']) {
    expect(below(services, name), name).toMatch(/^ {4}environment: \*environment$/m);
  }
  const own = [...below(below(services, 'worker'), 'environment').matchAll(/^ {6}([\w<]+):/gm)];
  expect(own.map(([, name]) => name)).toEqual(['<<', 'NODE_OPTIONS']);
});

it('every Redis has a password, which its health check and the containers of Fleetbook use', () => {
  const commands = [...FILE.matchAll(/- redis-server\n +- (--\w+)\n +- (\S+)\n/g)].map(
    ([, ...words]) => words,
  );
  expect(commands).toEqual(Array(3).fill(['--requirepass', `\${REDIS_PASSWORD:-fleetbook}`]));
  expect(FILE).not.toContain('["redis-server"');
  for (const name of ['queue-redis', 'cache-redis', 'cluster'])
    expect(below(services, name), name).toMatch(/^ {4}environment: \*redis-environment$/m);
  expect(below(FILE, 'x-cluster-node')).toMatch(/^ {2}environment: \*redis-environment$/m);
  for (const [, address] of FILE.matchAll(/(redis:\/\/[^\s}]+(?:\}@[^\s}]+)?)/g))
    expect(address).toMatch(/^redis:\/\/:\$\{REDIS_PASSWORD:-fleetbook\}@/);
});

describe('a profile', () => {
  const NODES = ['cluster-1', 'cluster-2', 'cluster-3', 'cluster-4', 'cluster-5', 'cluster-6'];
  const all = [...services.matchAll(/^ {2}([\w-]+):$/gm)].map(([, name = '']) => name);
  const node = below(FILE, 'x-cluster-node');
  const profileOf = (name: string) => {
    const service = below(services, name);
    const text = service.includes('<<: *cluster-node') ? node : service;
    return /^ +profiles: \[(\w+)\]$/m.exec(text)?.[1];
  };

  it('starts its services, and the others start without them', () => {
    const inProfile = new Map(all.map((name) => [name, profileOf(name)]));
    expect(inProfile).toEqual(
      new Map<string, string | undefined>([
        ...['postgres', 'queue-redis', 'cache-redis'].map((name) => [name, undefined] as const),
        ...['migrate', 'api', 'worker'].map((name) => [name, undefined] as const),
        ['replica', 'replica'],
        ['trial', 'trial'],
        ...[...NODES, 'cluster'].map((name) => [name, 'cluster'] as const),
      ]),
    );
    for (const name of all.filter((each) => profileOf(each) === undefined))
      for (const [, needed = ''] of below(below(services, name), 'depends_on').matchAll(/^ {6}([\w-]+):$/gm))
        expect([name, needed, profileOf(needed)]).toEqual([name, needed, undefined]);
  });

  it('of a cluster has nodes that lose no jobs, and keep their part and their place over a restart', () => {
    expect(node).toMatch(/--maxmemory-policy\n +- noeviction\n/);
    expect(node).toMatch(/--appendonly\n +- "yes"\n/);
    const volumes = FILE.slice(FILE.lastIndexOf('\nvolumes:'));
    for (const name of NODES) {
      expect(below(services, name)).toContain(`- ${name}-data:/data`);
      expect(volumes).toContain(`  ${name}-data:\n`);
    }
  });

  it('is documented by lines of .env in the head of the file', () => {
    const shown = Object.fromEntries(
      [...FILE.matchAll(/^# {3}((?:CACHE|QUEUE)_REDIS_URL|READER_DATABASE_URL)=(\S+)$/gm)].map(
        ([, name, value]) => [name, value],
      ),
    );
    const settings = readSettings(shown);
    const hosts = NODES.slice(0, 3).map((host) => ({ host, port: 6379 }));
    for (const url of [settings.CACHE_REDIS_URL, settings.QUEUE_REDIS_URL])
      expect(redisAddress(url ?? '')).toMatchObject({ kind: 'cluster', hosts });
    expect(new URL(settings.READER_DATABASE_URL ?? '').hostname).toBe('replica');
    const environment = below(FILE, 'x-environment');
    for (const role of ['CACHE', 'QUEUE'])
      expect(environment).toContain(
        `  ${role}_REDIS_URL: \${${role}_REDIS_URL:-redis://:\${REDIS_PASSWORD:-fleetbook}@${role.toLowerCase()}-redis:6379}\n`,
      );
  });
});
