/**
 * Installs the packages of a fresh clone. `node src/dev/install.mjs start` is for `npm start`: the packages that the program and
 * the build of the console import. Without `start` it adds those of tests and checks. It runs on the system's Node.js before
 * anything is installed, so it is plain JavaScript without dependencies. The published package does not use it.
 *
 * Afterwards `node_modules/.bin/node`, which npm puts first on the PATH of scripts, runs the sources: it is a link to the Node.js
 * of the system, or to one that this script brings if the system's is too old.
 */
import { spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MODULES = join(ROOT, 'node_modules');
/** npm writes it after a complete installation. */
const LIST = join(MODULES, '.package-lock.json');
/** Exists while npm writes: what an interrupted installation leaves is deleted. */
const UNFINISHED = join(MODULES, '.unfinished');
/** Exists while an installation writes into `node_modules`, which `npm ci` deletes. */
const INSTALLING = join(ROOT, '.installing');
/** A running installation shows each second that it runs. One that was killed leaves the file. */
const SIGN_EVERY_MS = 1000;
const KILLED_AFTER_MS = 10_000;
const NODE_LINK = join(MODULES, '.bin', 'node');
/** Its manifest and lock file pin the Node.js that is brought. */
const NODE_MANIFEST = fileURLToPath(new URL('node', import.meta.url));
const BROUGHT_NODE = join(MODULES, '.node');
const OLDEST_TO_INSTALL = 20;
/** The sources need type stripping and `await using`. */
const OLDEST_TO_RUN = 24;

const NPM_OPTIONS = ['--loglevel=error', '--no-audit', '--no-fund', '--no-progress'];
const FOR_START = 'the packages of a start';
const FOR_ALL = 'all packages, with those of tests and checks';

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

/** Returns the paths and entries of the lock file that belong to the installation, on this platform. */
function wantedFrom(lock, isForStart) {
  const fits = (allowed, own) => allowed === undefined || [allowed].flat().includes(own);
  return Object.entries(lock.packages).filter(
    ([path, { dev, os, cpu }]) =>
      path !== '' && !(isForStart && dev) && fits(os, process.platform) && fits(cpu, process.arch),
  );
}

function isInstalled(wanted) {
  const installed = readJson(LIST)?.packages;
  if (installed === undefined || existsSync(UNFINISHED)) return false;
  return wanted.every(([path, { version, optional }]) =>
    // npm skips packages for other C libraries.
    installed[path] === undefined ? optional === true : installed[path].version === version,
  );
}

/** `npm ci` deletes the Node.js in node_modules, so npm must not run on it. */
function pathWithoutOwnNode() {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => !folder.startsWith(MODULES))
    .join(delimiter);
}

/** Shows what is being installed, and how far it is: on one line of a terminal, else whenever a quarter is done. */
function showProgress(what, wanted) {
  const isTerminal = process.stderr.isTTY === true;
  const began = Date.now();
  let shown = 0;
  const show = (count) => {
    const line = `fleetbook: installing ${what}: ${count} of ${wanted.length} packages`;
    if (isTerminal) process.stderr.write(`\r${line}`);
    else console.error(line);
    shown = count;
  };
  show(0);
  const timer = setInterval(() => {
    const count = wanted.filter(([path]) => existsSync(join(ROOT, path, 'package.json'))).length;
    if (count > shown && (isTerminal || count >= shown + wanted.length / 4)) show(count);
  }, 250);
  return (isDone) => {
    clearInterval(timer);
    if (isTerminal) process.stderr.write('\n');
    if (isDone)
      console.error(
        `fleetbook: installed ${what} in ${Math.round((Date.now() - began) / 1000)} seconds; the next time takes none`,
      );
  };
}

/** Returns what went wrong, with the remedy. */
async function runNpm(args, cwd) {
  let npm;
  let isInterrupted = false;
  // Before npm starts: a signal in between would end this process alone, and npm would go on.
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, () => {
      isInterrupted = true;
      npm?.kill(signal);
    });
  npm = spawn('npm', [...args, ...NPM_OPTIONS], {
    cwd,
    env: { ...process.env, PATH: pathWithoutOwnNode() },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return await new Promise((resolve) => {
    npm.on('error', (error) => resolve(`cannot run npm (${error.message}); install npm and try again`));
    npm.on('exit', (code) => {
      if (isInterrupted) resolve('the installation was interrupted; the same command runs it again');
      else if (code === 0) resolve(undefined);
      else
        resolve(
          'npm could not install the packages, see above; fix the problem and run the same command again',
        );
    });
  });
}

/** Runs `work` while no other process installs packages in this clone. */
async function alone(work) {
  for (let waits = false; !takePlace(); await sleep(100)) {
    if (!waits) console.error('fleetbook: waiting for another installation in this folder');
    waits = true;
  }
  const leave = () => rmSync(INSTALLING, { force: true });
  process.once('exit', leave);
  const signs = setInterval(() => {
    if (existsSync(INSTALLING)) utimesSync(INSTALLING, new Date(), new Date());
  }, SIGN_EVERY_MS);
  await work();
  clearInterval(signs);
  process.off('exit', leave);
  leave();
}

/** Returns false while another process has the place. */
function takePlace() {
  try {
    writeFileSync(INSTALLING, '', { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') stop(`cannot write ${INSTALLING} (${error.message})`);
  }
  const sign = statSync(INSTALLING, { throwIfNoEntry: false });
  if (sign !== undefined && Date.now() - sign.mtimeMs > KILLED_AFTER_MS) rmSync(INSTALLING, { force: true });
  return false;
}

/** Returns what is wanted: the packages of a start, or all. A start keeps those of tests, and their versions are its own then. */
function plan(lock) {
  const installed = readJson(LIST)?.packages ?? {};
  const hasAll = Object.keys(installed).some((path) => lock.packages[path]?.dev === true);
  const isForStart = process.argv[2] === 'start' && !hasAll;
  return { isForStart, wanted: wantedFrom(lock, isForStart) };
}

async function installMissing(lock) {
  const { isForStart, wanted } = plan(lock);
  // Another process may have installed them since.
  if (!isInstalled(wanted)) await install(isForStart ? FOR_START : FOR_ALL, wanted, isForStart);
}

async function install(what, wanted, isForStart) {
  // Packages of a complete installation stay in place, because a program may run on them.
  const isAddition = existsSync(LIST) && !existsSync(UNFINISHED);
  const end = showProgress(what, wanted);
  mkdirSync(MODULES, { recursive: true });
  writeFileSync(UNFINISHED, '');
  // `npm ci` deletes node_modules with this file, and `install` with `--no-save` keeps the lock file.
  const failure = await runNpm(
    [...(isAddition ? ['install', '--no-save'] : ['ci']), isForStart ? '--omit=dev' : '--include=dev'],
    ROOT,
  );
  end(failure === undefined);
  if (failure !== undefined) stop(failure);
  rmSync(UNFINISHED, { force: true });
}

/** Returns the program of the Node.js that this script brought. */
function broughtProgram() {
  const { optionalDependencies } = readJson(join(NODE_MANIFEST, 'package.json'));
  const folder = Object.entries(optionalDependencies)
    .map(([name, version]) => ({ path: join(BROUGHT_NODE, 'node_modules', name), version }))
    .find(({ path, version }) => readJson(join(path, 'package.json'))?.version === version);
  return folder === undefined ? undefined : join(folder.path, 'bin', 'node');
}

/** Installs it under another name first, so that an interrupted run leaves no half of it. */
async function bringNode() {
  console.error(`fleetbook: installing a newer Node.js, because this is ${process.version}`);
  const draft = `${BROUGHT_NODE}.new`;
  rmSync(draft, { recursive: true, force: true });
  cpSync(NODE_MANIFEST, draft, { recursive: true });
  const failure = await runNpm(['ci', '--ignore-scripts'], draft);
  if (failure !== undefined) stop(failure);
  // A third of the package are headers for native modules.
  for (const name of Object.keys(readJson(join(draft, 'package.json')).optionalDependencies))
    rmSync(join(draft, 'node_modules', name, 'include'), { recursive: true, force: true });
  rmSync(BROUGHT_NODE, { recursive: true, force: true });
  renameSync(draft, BROUGHT_NODE);
  const program = broughtProgram();
  if (program === undefined)
    stop(
      `needs Node.js ${OLDEST_TO_RUN} or newer, and this is ${process.version}; install it from https://nodejs.org, because npm has no package of it for ${process.platform} ${process.arch}`,
    );
  // A fifth of it are symbols for debuggers. On a system without `strip` they stay.
  if (process.platform === 'linux') spawnSync('strip', [program]);
}

/** Replaces the link in one step, because another process may run it or replace it too. */
function link(target) {
  mkdirSync(dirname(NODE_LINK), { recursive: true });
  const draft = `${NODE_LINK}.${process.pid}`;
  rmSync(draft, { force: true });
  symlinkSync(target, draft);
  renameSync(draft, NODE_LINK);
}

/** Makes `node_modules/.bin/node` run the sources. */
async function linkNode() {
  const canRun = (version) => Number(/^v(\d+)/.exec(version ?? '')?.[1]) >= OLDEST_TO_RUN;
  if (!existsSync(BROUGHT_NODE)) {
    if (canRun(spawnSync(NODE_LINK, ['--version'], { encoding: 'utf8' }).stdout)) return;
    if (canRun(process.version)) {
      link(process.execPath);
      return;
    }
  }
  const bringOnce = async () => broughtProgram() === undefined && (await bringNode());
  if (broughtProgram() === undefined) await alone(bringOnce);
  link(relative(dirname(NODE_LINK), broughtProgram()));
}

if (Number(process.versions.node.split('.')[0]) < OLDEST_TO_INSTALL) {
  stop(
    `needs Node.js ${OLDEST_TO_INSTALL} or newer to install itself, and this is ${process.version}; see https://nodejs.org`,
  );
}
const lock = readJson(join(ROOT, 'package-lock.json'));
if (lock !== undefined) {
  if (!isInstalled(plan(lock).wanted)) await alone(() => installMissing(lock));
  await linkNode();
}
