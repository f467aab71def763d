/**
 * Releases from conventional commits:
 *
 *   node release/please/main.mjs preview [--write]   prints the next version and its text, from this clone without a network;
 *                                          --write also changes the files, as the pull request does
 *   node release/please/main.mjs pull-request        opens or updates the pull request of the next release on GitHub
 *   node release/please/main.mjs tag                 tags the release whose pull request was merged, and creates it on GitHub
 *
 * The last two need GITHUB_TOKEN and GITHUB_REPOSITORY.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GitHub, Manifest, registerChangelogNotes, registerPlugin, setLogger } from 'release-please';
import { LocalGitHub } from 'release-please/build/src/local-github.js';
import { OperatorChangelog, OperatorNotes } from './changelog.mjs';

const ROOT = join(import.meta.dirname, '../..');
const BRANCH = 'main';
const CONFIG = ['release-please-config.json', '.release-please-manifest.json'];

registerChangelogNotes('operators', ({ github }) => new OperatorNotes(github));
registerPlugin(
  'operators',
  ({ github, targetBranch, repositoryConfig }) =>
    new OperatorChangelog(github, targetBranch, repositoryConfig),
);

function fail(message) {
  process.stderr.write(`release: ${message}\n`);
  process.exit(1);
}

function setting(name) {
  return process.env[name] || fail(`${name} is not set; the workflow "release" sets it`);
}

/** The commits of this clone's HEAD, with its tags as releases. */
function thisClone() {
  const head = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).trim();
  const repository = { owner: 'local', repo: 'fleetbook', defaultBranch: head };
  const none = async function* () {};
  const local = new LocalGitHub(repository, { pullRequestIterator: none, releaseIterator: none }, ROOT);
  return { github: local, branch: head };
}

async function onGitHub() {
  const [owner, repo] = setting('GITHUB_REPOSITORY').split('/');
  const github = await GitHub.create({
    owner,
    repo,
    defaultBranch: BRANCH,
    token: setting('GITHUB_TOKEN'),
    // Set by GitHub's runners, also on an own server.
    ...(process.env.GITHUB_API_URL ? { apiUrl: process.env.GITHUB_API_URL } : {}),
    ...(process.env.GITHUB_API_URL ? { graphqlUrl: process.env.GITHUB_API_URL.replace(/\/v3$/, '') } : {}),
  });
  return { github, branch: BRANCH };
}

async function manifestOf({ github, branch }) {
  const manifest = await Manifest.fromManifest(github, branch, ...CONFIG);
  return manifest;
}

async function preview(isWriting) {
  const clone = thisClone();
  const [pullRequest] = await (await manifestOf(clone)).buildPullRequests();
  if (!pullRequest) {
    process.stdout.write('no release: no commit since the last tag is a feat, a fix or a breaking change\n');
    return;
  }
  process.stdout.write(`${pullRequest.title}\n\n${pullRequest.body}\n`);
  const changes = await clone.github.buildChangeSet(pullRequest.updates, clone.branch);
  for (const [path, { content }] of changes) {
    process.stdout.write(`changed: ${path}\n`);
    if (isWriting) writeFileSync(join(ROOT, path), content);
  }
}

async function pullRequest() {
  const created = await (await manifestOf(await onGitHub())).createPullRequests();
  for (const found of created) process.stdout.write(`pull request ${found?.number}: ${found?.title}\n`);
}

async function tag() {
  const created = await (await manifestOf(await onGitHub())).createReleases();
  const release = created.find((each) => each !== undefined);
  process.stdout.write(release ? `released ${release.tagName}\n` : 'nothing to release\n');
  if (process.env.GITHUB_OUTPUT) appendFileSync(process.env.GITHUB_OUTPUT, `tag=${release?.tagName ?? ''}\n`);
}

const [command, option] = process.argv.slice(2);
if (process.env.CI !== 'true') {
  const quiet = () => {};
  setLogger({ error: console.error, warn: console.error, info: quiet, debug: quiet, trace: quiet });
}
if (command === 'preview' && (option === undefined || option === '--write'))
  await preview(option === '--write');
else if (command === 'pull-request') await pullRequest();
else if (command === 'tag') await tag();
else fail(`unknown command "${command ?? ''}"; use preview [--write], pull-request or tag`);
