import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

interface Entry {
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  /** Of packages that only tests install, and that an optional peer of the program names. */
  readonly devOptional?: boolean;
}
type Entries = Readonly<Record<string, Entry>>;

const ROOT = join(import.meta.dirname, '../..');

async function entries(file: string): Promise<Entries> {
  return (JSON.parse(await readFile(join(ROOT, file), 'utf8')) as { packages: Entries }).packages;
}

/** The places where Node searches for a package imported at `from`, nearest first. */
function places(from: string, name: string): string[] {
  const above = from.lastIndexOf('/node_modules/');
  const here = `${from === '' ? '' : `${from}/`}node_modules/${name}`;
  if (from === '') return [here];
  return [here, ...places(above < 0 ? '' : from.slice(0, above), name)];
}

describe.each(['package-lock.json', 'src/dev/node/package-lock.json'])('%s', (file) => {
  it('has an entry for the packages of each platform, without which `npm ci` rejects it everywhere', async () => {
    const all = await entries(file);
    const missing = Object.entries(all).flatMap(([path, entry]) =>
      Object.keys(entry.optionalDependencies ?? {}).filter(
        (name) => !places(path, name).some((place) => all[place]),
      ),
    );
    expect(missing, 'run `node .ci/complete-lock.mjs`').toEqual([]);
  });

  it('contains no download address', async () => {
    const addressed = Object.entries(await entries(file)).filter(([, entry]) =>
      /^https?:/.test(entry.resolved ?? ''),
    );
    expect(addressed).toEqual([]);
  });

  it('has a checksum of each package, with which npm checks what the registry sends', async () => {
    const unchecked = Object.entries(await entries(file)).filter(
      ([path, { link, integrity = '' }]) =>
        path.includes('node_modules/') && link !== true && !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity),
    );
    expect(unchecked, 'run `node .ci/complete-lock.mjs`').toEqual([]);
  });
});

it('leaves packages of tests out of a start, also those that a library of the program can use', async () => {
  const all = await entries('package-lock.json');
  expect(Object.keys(all).filter((path) => all[path]?.devOptional)).toEqual([]);
});
