/** The shell scripts of a release, with programs that record their arguments in place of docker, cosign and npm. */
import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { inPackage } from '../../src/config/package.ts';
import { findProgram } from '../../src/processes/find-program.ts';
import { needs } from '../support/needs.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

/** A folder with programs in front of the PATH. Each appends its name and arguments to a file. */
async function stage(programs: Readonly<Record<string, string>>) {
  const folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-release-'));
  const bin = join(folder.path, 'bin');
  const log = join(folder.path, 'calls');
  mkdirSync(bin);
  writeFileSync(log, '');
  for (const [name, body] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/usr/bin/env bash\necho "${name} $*" >> '${log}'\n${body}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return {
    path: folder.path,
    calls: () => readFileSync(log, 'utf8').trim().split('\n'),
    run: (script: string, args: readonly string[], env: Record<string, string> = {}) =>
      new Promise<{ code: number | string; output: string }>((resolve) => {
        const all = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}`, ...env };
        execFile('bash', [inPackage(script), ...args], { env: all }, (error, stdout, stderr) =>
          resolve({ code: error?.code ?? 0, output: stdout + stderr }),
        );
      }),
    [Symbol.asyncDispose]: () => folder.remove(),
  };
}

describe('release/image.sh', needs(findProgram('jq') !== undefined, 'the program jq'), () => {
  const docker = `while [ "$1" != --metadata-file ]; do shift; done; echo '{"containerimage.digest": "${DIGEST}"}' > "$2"`;

  it('builds for both architectures, and signs the pushed digest', async () => {
    await using scene = await stage({ docker, cosign: '' });
    const output = join(scene.path, 'output');
    const env = { IMAGE: 'ghcr.io/Acme/Fleetbook', TAG: 'v1.2.3', GITHUB_OUTPUT: output };
    expect(await scene.run('release/image.sh', [], env)).toEqual({ code: 0, output: '' });
    const [built = '', signed] = scene.calls();
    expect(built).toMatch(/^docker buildx build --platform linux\/amd64,linux\/arm64 --push /);
    expect(built).toContain('--tag ghcr.io/acme/fleetbook:1.2.3 --tag ghcr.io/acme/fleetbook:latest');
    expect(signed).toBe(`cosign sign --yes --recursive ghcr.io/acme/fleetbook@${DIGEST}`);
    expect(readFileSync(output, 'utf8')).toBe(`digest=${DIGEST}\n`);
  });

  it('signs nothing after a failed build or without a digest', async () => {
    for (const failing of ['exit 1', docker.replace(/"\{.*\}"|'\{.*\}'/, "'{}'")]) {
      await using scene = await stage({ docker: failing, cosign: '' });
      const { code } = await scene.run('release/image.sh', [], { IMAGE: 'a/b', TAG: 'v1.2.3' });
      expect(code).not.toBe(0);
      expect(scene.calls()).toHaveLength(1);
    }
  });

  it('names a missing setting', async () => {
    await using scene = await stage({ docker, cosign: '' });
    const { code, output } = await scene.run('release/image.sh', [], { IMAGE: 'a/b', TAG: '' });
    expect(code).not.toBe(0);
    expect(output).toContain('TAG is not set, for example v1.2.3');
  });
});

describe('release/publish.sh', () => {
  async function packed() {
    const scene = await stage({ npm: '' });
    const folder = join(scene.path, 'artifacts');
    mkdirSync(folder);
    for (const name of ['client.tgz', 'server.tgz']) writeFileSync(join(folder, name), name);
    execFileSync('bash', ['-c', 'sha256sum -- *.tgz > SHA256SUMS'], { cwd: folder });
    return { ...scene, folder };
  }

  it('publishes each packed file with provenance', async () => {
    await using scene = await packed();
    expect(await scene.run('release/publish.sh', [scene.folder, '--dry-run'])).toEqual({
      code: 0,
      output: '',
    });
    expect(scene.calls()).toEqual(
      ['client', 'server'].map(
        (name) => `npm publish --provenance --access public --dry-run ${scene.folder}/${name}.tgz`,
      ),
    );
  });

  it('publishes nothing if a file differs from its checksum', async () => {
    await using scene = await packed();
    writeFileSync(join(scene.folder, 'server.tgz'), 'another');
    expect((await scene.run('release/publish.sh', [scene.folder])).code).toBe(1);
    expect(scene.calls()).toEqual(['']);
  });
});

describe('bench/push-history.sh', () => {
  const result = (found: number) => ({
    bars: [{ what: 'hot <reads>', found, unit: '/s', limit: 10, note: 'n' }],
  });

  it('begins the branch, adds each result, and draws all of them', async () => {
    await using scene = await stage({});
    const remote = join(scene.path, 'remote.git');
    execFileSync('git', ['init', '--quiet', '--bare', remote]);
    for (const found of [100, 50]) {
      const file = join(scene.path, 'read.json');
      writeFileSync(file, JSON.stringify(result(found)));
      expect(await scene.run('bench/push-history.sh', [file], { REMOTE: remote })).toEqual({
        code: 0,
        output: '',
      });
    }
    const show = (path: string) =>
      execFileSync('git', ['-C', remote, 'show', `benchmarks:${path}`], { encoding: 'utf8' });
    const entries = show('read.ndjson')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(entries).toMatchObject([{ bars: [{ found: 100 }] }, { bars: [{ found: 50 }] }]);
    const chart = show('read.svg');
    expect(chart).toContain('2 results');
    expect(chart).toContain('hot &lt;reads&gt;');
    // The second point has half of the first one's height.
    expect(chart).toContain('M430.0 50.0L760.0 65.0');
    expect(chart).toContain('>50 /s (limit 10)<');
    expect(show('README.md')).toContain('read.svg');
  });
});
