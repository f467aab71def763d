/**
 * Installs the packages of a fresh clone before `npm start` and `npm test`. It runs on the system's Node.js before anything is
 * installed, so it is plain JavaScript without dependencies. The published package does not use it.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MODULES = join(ROOT, 'node_modules');
const OWN_NODE = join(MODULES, '.bin', 'node');
const OLDEST_TO_INSTALL = 20;
/** The sources need type stripping and `await using`. */
const OLDEST_TO_RUN = 24;

const major = (version) => Number(version.replace(/^v/, '').split('.')[0]);

function stop(message) {
  console.error(`fleetbook: ${message}`);
  process.exit(1);
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

/** npm writes node_modules/.package-lock.json after a complete installation. */
function isInstalled(wanted) {
  const installed = readJson(join(MODULES, '.package-lock.json'))?.packages;
  if (installed === undefined) return false;
  return Object.entries(wanted).every(
    ([path, entry]) =>
      path === '' ||
      installed[path]?.version === entry.version ||
      // npm skips packages for other platforms.
      (installed[path] === undefined && entry.optional === true),
  );
}

/** `npm ci` replaces the Node.js in node_modules, so npm must not run on it. */
function pathWithoutOwnNode() {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => !folder.startsWith(MODULES))
    .join(delimiter);
}

function install() {
  console.error('fleetbook: installing its packages; the first time this takes about a minute …');
  const result = spawnSync('npm', ['ci', '--loglevel=error', '--no-audit', '--no-fund'], {
    cwd: ROOT,
    env: { ...process.env, PATH: pathWithoutOwnNode() },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (result.error) stop(`cannot run npm (${result.error.message}); install npm and try again`);
  if (result.status !== 0)
    stop('npm could not install the packages, see above; fix the problem and run the same command again');
}

function checkNode() {
  const answer = spawnSync(OWN_NODE, ['--version'], { encoding: 'utf8' });
  const own = answer.status === 0 ? answer.stdout.trim() : undefined;
  if (major(own ?? process.version) >= OLDEST_TO_RUN) return;
  stop(
    own === undefined
      ? 'the package `node`, which brings the Node.js that Fleetbook runs on, has not installed it: its install script ' +
          'was blocked or failed. Run `npm rebuild node --ignore-scripts=false --foreground-scripts` and try again, ' +
          `or install Node.js ${OLDEST_TO_RUN} or newer on this system (it has ${process.version})`
      : `node_modules/.bin/node is ${own}, and Fleetbook needs ${OLDEST_TO_RUN} or newer: run \`npm ci\` and try again`,
  );
}

if (major(process.version) < OLDEST_TO_INSTALL) {
  stop(
    `needs Node.js ${OLDEST_TO_INSTALL} or newer to install itself, and this is ${process.version}; see https://nodejs.org`,
  );
}
const lock = readJson(join(ROOT, 'package-lock.json'));
if (lock !== undefined) {
  const installed = isInstalled(lock.packages);
  if (!installed) install();
  if (!installed || !existsSync(OWN_NODE)) checkNode();
}
