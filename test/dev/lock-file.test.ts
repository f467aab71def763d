import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';

type Entries = Readonly<
  Record<string, { readonly optionalDependencies?: Readonly<Record<string, string>>; resolved?: string }>
>;

async function entries(): Promise<Entries> {
  const file = join(import.meta.dirname, '../../package-lock.json');
  return (JSON.parse(await readFile(file, 'utf8')) as { packages: Entries }).packages;
}

/** The places where Node searches for a package imported at `from`, nearest first. */
function places(from: string, name: string): string[] {
  const above = from.lastIndexOf('/node_modules/');
  const here = `${from === '' ? '' : `${from}/`}node_modules/${name}`;
  if (from === '') return [here];
  return [here, ...places(above < 0 ? '' : from.slice(0, above), name)];
}

it('has an entry for the packages of each platform, without which `npm ci` rejects it everywhere', async () => {
  const all = await entries();
  const missing = Object.entries(all).flatMap(([path, entry]) =>
    Object.keys(entry.optionalDependencies ?? {}).filter(
      (name) => !places(path, name).some((place) => all[place]),
    ),
  );
  expect(missing, 'run `node .ci/complete-lock.mjs`').toEqual([]);
});

it('contains no download address', async () => {
  const addressed = Object.entries(await entries()).filter(([, entry]) =>
    /^https?:/.test(entry.resolved ?? ''),
  );
  expect(addressed).toEqual([]);
});
