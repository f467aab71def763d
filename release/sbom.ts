/**
 * `node release/sbom.ts <file>`: the list of components as CycloneDX. `npm sbom` describes the packages that npm installs with a
 * release; this adds the packages that are part of the release's own files.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Component, components } from './components.ts';

const ROOT = join(import.meta.dirname, '..');

interface BomComponent {
  readonly 'bom-ref': string;
  readonly type: 'library' | 'application';
  readonly name: string;
  readonly version: string;
  readonly scope?: 'required' | 'optional';
  readonly purl: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly licenses?: readonly unknown[];
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

export interface Bom {
  readonly bomFormat: 'CycloneDX';
  readonly specVersion: string;
  readonly metadata: { readonly component: BomComponent };
  readonly components: readonly BomComponent[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
}

/** Returns the components of a release; `found` is the result of `components()`. */
export function sbom(found: readonly Component[]): Bom {
  const ofClone = JSON.parse(
    execFileSync('npm', ['sbom', '--sbom-format=cyclonedx', '--omit=dev', '--package-lock-only'], {
      cwd: ROOT,
      encoding: 'utf8',
      maxBuffer: 100_000_000,
    }),
  ) as Bom;
  const outside = new Set(
    found
      .filter(({ delivery }) => delivery === 'installed')
      .map(({ name, version }) => purlOf(name, version)),
  );
  const installed = ofClone.components.filter(({ purl }) => outside.has(purl));
  const known = new Set(installed.map(({ purl }) => purl));
  const bundled = found.map(bomComponent).filter(({ purl }) => !known.has(purl));
  const { component } = ofClone.metadata;
  const isListed = (ref: string) => installed.some((each) => each['bom-ref'] === ref);
  const root = component['bom-ref'];
  // npm names it after the folder of the clone.
  const { name, version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as BomComponent;
  return {
    ...ofClone,
    metadata: {
      ...ofClone.metadata,
      component: { ...component, name, version, purl: purlOf(name, version) },
    },
    components: [...installed, ...bundled],
    dependencies: [
      ...ofClone.dependencies
        .filter(({ ref }) => ref === root || isListed(ref))
        .map(({ ref, dependsOn = [] }) => ({
          ref,
          dependsOn: [
            ...dependsOn.filter(isListed),
            ...(ref === root ? bundled.map((each) => each['bom-ref']) : []),
          ],
        })),
      ...bundled.map((each) => ({ ref: each['bom-ref'], dependsOn: [] })),
    ],
  };
}

const purlOf = (name: string, version: string) => `pkg:npm/${name.replace('@', '%40')}@${version}`;

function bomComponent({ name, version, license, integrity, delivery }: Component): BomComponent {
  const purl = purlOf(name, version);
  const [algorithm = '', digest = ''] = (integrity ?? '').split('-', 2);
  return {
    'bom-ref': `${name}@${version}`,
    type: 'library',
    name,
    version,
    scope: 'required',
    purl,
    ...(algorithm === 'sha512'
      ? { hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }] }
      : {}),
    ...(license === undefined ? {} : { licenses: [{ license: { id: license } }] }),
    properties: [{ name: 'fleetbook:delivery', value: delivery }],
  };
}

if (import.meta.main) {
  const [file] = process.argv.slice(2);
  if (file === undefined) {
    process.stderr.write('give the file to write, for example: node release/sbom.ts sbom.cdx.json\n');
    process.exit(1);
  }
  const bom = sbom(await components());
  writeFileSync(file, `${JSON.stringify(bom, undefined, 2)}\n`);
  process.stdout.write(`${bom.components.length} components in ${file}\n`);
}
