/** What docker-compose.yml gives to the containers, without a Docker engine; test/containers asks Compose itself. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { inPackage } from '../../src/config/package.ts';
import { SETTINGS } from '../../src/config/settings.ts';

const FILE = readFileSync(inPackage('docker-compose.yml'), 'utf8');
/** The lines below a key, one level in, e.g. those of a service. */
function below(text: string, key: string): string {
  return new RegExp(`^( *)${key}:.*\\n((?:\\1 +.*\\n|\\n)*)`, 'm').exec(text)?.[2] ?? '';
}
const services = below(FILE, 'services');
const FIXED = ['DATABASE_URL', 'QUEUE_REDIS_URL', 'CACHE_REDIS_URL', 'HOST', 'PORT', 'OPS_HOST', 'OPS_PORT'];

it('every container of Fleetbook gets all of .env, whatever a setting or a source’s variable is called', () => {
  expect(below(FILE, 'x-fleetbook')).toMatch(/^ {2}env_file: \[\.env\]$/m);
  for (const name of ['migrate', 'api', 'worker']) {
    const service = below(services, name);
    expect(service, name).toMatch(/^ {4}<<: \*fleetbook$/m);
    // What a service says itself would take the place of what all of them have.
    expect(service, name).not.toContain('env_file');
  }
});

it('only where containers find each other goes before .env: no other setting is withheld', () => {
  const fixed = [...below(FILE, 'x-environment').matchAll(/^ {2}(\w+):/gm)].map(([, name]) => name);
  expect(fixed).toEqual(FIXED);
  expect(Object.keys(SETTINGS)).toEqual(expect.arrayContaining(FIXED));
  for (const name of ['migrate', 'api']) {
    expect(below(services, name), name).toMatch(/^ {4}environment: \*environment$/m);
  }
  const own = [...below(below(services, 'worker'), 'environment').matchAll(/^ {6}([\w<]+):/gm)];
  expect(own.map(([, name]) => name)).toEqual(['<<', 'NODE_OPTIONS']);
});
