/**
 * Completes package-lock.json after a change of the dependencies. npm writes no entry for an optional package of another
 * platform if its registry lacks the package, and `npm ci` then refuses the lock file on every machine. The script adds
 * these entries. The parent package and the name give their values. Each entry without a checksum gets that of the registry.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

/** The second one brings Node.js to a system with an older one. */
const FILES = ['../package-lock.json', '../src/dev/node/package-lock.json'];

const SYSTEMS = [
  'aix',
  'android',
  'darwin',
  'freebsd',
  'linux',
  'netbsd',
  'openbsd',
  'openharmony',
  'sunos',
  'win32',
];
const CPUS = ['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'x64'];
const LIBCS = { gnu: 'glibc', gnueabihf: 'glibc', musl: 'musl', musleabihf: 'musl' };

/** Returns true if Node resolves that package from this place in the tree. */
function isFound(lock, from, name) {
  for (let place = from; ; place = place.slice(0, Math.max(place.lastIndexOf('/node_modules/'), 0))) {
    if (lock.packages[`${place === '' ? '' : `${place}/`}node_modules/${name}`]) return true;
    if (place === '') return false;
  }
}

function entry(name, version, parent) {
  const words = name.slice(name.indexOf('/') + 1).split('-');
  const os = words.find((word) => SYSTEMS.includes(word));
  const cpu = words.find((word) => CPUS.includes(word));
  const libc = words.map((word) => LIBCS[word]).find((found) => found !== undefined);
  if (!/^\d+\.\d+\.\d+/.test(version) || os === undefined || cpu === undefined) {
    throw new Error(
      `cannot tell for which platform ${name}@${version} is; add its entry to package-lock.json by hand`,
    );
  }
  return {
    version,
    cpu: [cpu],
    ...(parent.dev ? { dev: true } : {}),
    ...(os === 'linux' && libc ? { libc: [libc] } : {}),
    optional: true,
    os: [os],
  };
}

/** @throws Error if the registry lacks the package: `npm ci` would install an entry without a checksum unchecked */
function checksum(name, version) {
  const shown = execFileSync('npm', ['view', `${name}@${version}`, 'dist.integrity'], {
    encoding: 'utf8',
  }).trim();
  if (shown.startsWith('sha512-')) return shown;
  throw new Error(
    `the registry states no checksum of ${name}@${version}; run the script with a registry that has it`,
  );
}

for (const file of FILES) {
  const url = new URL(file, import.meta.url);
  const lock = JSON.parse(readFileSync(url, 'utf8'));
  let changed = 0;
  for (const [path, parent] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
      if (isFound(lock, path, name)) continue;
      lock.packages[`node_modules/${name}`] = entry(name, version, parent);
    }
  }
  for (const [path, found] of Object.entries(lock.packages)) {
    const at = path.lastIndexOf('node_modules/');
    if (at < 0 || found.link || found.integrity) continue;
    const { version, ...rest } = found;
    const name = found.name ?? path.slice(at + 'node_modules/'.length);
    lock.packages[path] = { version, integrity: checksum(name, version), ...rest };
    changed++;
  }
  lock.packages = Object.fromEntries(
    Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en')),
  );
  if (changed > 0) writeFileSync(url, `${JSON.stringify(lock, null, 2)}\n`);
  console.log(`${changed} entries added or completed in ${file.slice(3)}`);
}
