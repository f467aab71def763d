import { lookup } from 'node:dns/promises';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { openQueues, queuePrefix } from '../../../workers/queues.ts';
import { CommandFailure } from '../../cli/terminal/failure.ts';
import { decider } from '../../cli/terminal/options.ts';
import { print } from '../../cli/terminal/output.ts';
import { disabledNote, leadingReasons, missingRateLines } from '../../cli/terminal/source-notes.ts';
import { stopSignal } from '../../cli/terminal/terminal.ts';
import {
  type Config,
  type Environment,
  liveEnvironment,
  namesASource,
  readConfig,
  variablesRead,
} from '../../config/config.ts';
import { ownScript, programScript } from '../../config/package.ts';
import { SETTINGS } from '../../config/settings.ts';
import { type Database, openStore, type Store } from '../../db/connection/connect.ts';
import { migrate } from '../../db/migration/migrate.ts';
import { firstOrganization, type Organization } from '../../db/organizations.ts';
import { missingRates, quarantinedRows } from '../../db/quarantine.ts';
import { type Content, claimContent, exampleRegion, sourceStatus } from '../../db/sources.ts';
import { tokenWorks } from '../../db/tokens.ts';
import { dirtyDocuments } from '../../db/versions.ts';
import { type Home, openHome } from '../../dev/home.ts';
import { announceRunning, runningNotice } from '../../dev/running.ts';
import { SAMPLE_RATES } from '../../dev/sample/rates.ts';
import { SAMPLE_ORGANIZATION, sampleSettings } from '../../dev/sample/upstream.ts';
import type { Decider } from '../../domain/operator.ts';
import { SCOPES } from '../../domain/scope.ts';
import { hashToken } from '../../domain/token.ts';
import { createOperator, issueToken } from '../../features/operators/db/operators.ts';
import { findTokens } from '../../features/operators/db/tokens.ts';
import { mergeMetrics } from '../../ops/merge-metrics.ts';
import { startChild, WORKER_NODE_ARGS } from '../../processes/child-process.ts';
import { freePort } from '../../processes/port.ts';
import { Supervisor } from '../../processes/supervisor.ts';
import { type Administration, administration } from '../actions/administration.ts';
import { openLoggedRedis } from '../connections.ts';
import { Disposer } from '../disposer.ts';
import { FEATURE_CONFIG } from '../feature-config.ts';
import { FEATURES } from '../features.ts';
import { openLogger } from '../logger.ts';
import { API, checkPortsAreFree, OPS, reachableHost } from './listen.ts';
import { listenOps, OPS_BY_PARENT, openParts } from './ops.ts';
import { startServers } from './servers.ts';

/** `ready` is printed after this time (ms) even if first syncs still run. */
const FIRST_SYNC_WITHIN_MS = 120_000;
/** `ready` is printed after this time (ms) even if documents still wait for publication. */
const PUBLISHED_WITHIN_MS = 10_000;
const FIRST_START = 'made by `fleetbook up`';
const DEFAULT_ORGANIZATION = { slug: 'default', name: 'Default organization' };

export interface UpOptions {
  /** Adds the public providers that need no credentials. */
  readonly live?: boolean;
  readonly demo?: {
    /** Fills a new database before the first worker starts. */
    readonly fill: (config: Config, logger: Logger) => Promise<void>;
    /** Called after `ready` is printed, with the address of the operators' pages. */
    readonly onReady: (opsUrl: string) => void;
  };
}

/** Runs everything on this machine until Ctrl-C, with own servers and the sample unless settings name others. */
export async function up(env: Environment, options: UpOptions): Promise<void> {
  const stop = stopSignal();
  const content: Content = options.live || namesASource(env) ? 'live' : 'sample';
  const live = options.live ? liveEnvironment(env) : {};
  const isOffline = await Promise.race([lacksNetwork(Object.values(live), env), stop.then(() => false)]);
  if (isOffline) checkOfflineStart(env);
  // Each source fails for the same reason, which is printed once.
  const quiet = isOffline && !env.LOG_LEVEL ? { LOG_LEVEL: 'error' } : {};
  const given = { ...env, ...live, ...quiet, FLEETBOOK_CONTENT: content };
  const config = readConfig(given, FEATURE_CONFIG);
  // `info` logs restarts: the log of an end must not be the last one.
  const logger = openLogger({ LOG_LEVEL: env.LOG_LEVEL ? config.settings.LOG_LEVEL : 'info' }, 'up');
  await using closing = new Disposer();
  const root = config.settings.FLEETBOOK_HOME;
  const home = closing.use(openHome(root, options.demo ? 'demo' : content));
  await checkPortsAreFree(config.settings, [API, OPS]).catch((error: unknown) => {
    // The `up` of another mode may hold the port.
    const notice = runningNotice(root);
    throw notice === undefined ? error : new CommandFailure(notice);
  });
  // Ctrl-C during the start stops what has started. It is not a failure.
  const started = start(given, config, content, home, closing, logger, options);
  const outcome = await Promise.race([
    started.then(() => 'ready' as const),
    stop.then(() => 'stopped' as const),
  ]);
  if (outcome === 'stopped') started.catch(() => {});
  else await stop;
  print('stopping');
}

const NO_NETWORK = 'there is no network: no name of a public provider resolves';

/** @param urls of public providers @returns false without URLs, and behind a proxy, which resolves names itself */
async function lacksNetwork(urls: readonly string[], env: Environment): Promise<boolean> {
  if (urls.length === 0 || env.NODE_USE_ENV_PROXY) return false;
  return Promise.any(urls.map((url) => lookup(new URL(url).hostname))).then(
    () => false,
    () => true,
  );
}

/** Data of an earlier start and own sources need no network. @throws CommandFailure if there is neither */
function checkOfflineStart(env: Environment): void {
  const folder = resolve(env.FLEETBOOK_HOME || SETTINGS.FLEETBOOK_HOME.fallback, 'live');
  if (!existsSync(folder) && !namesASource(env))
    throw new CommandFailure(`${NO_NETWORK}; connect this machine, or start the sample without --live`);
  print(`${NO_NETWORK}; the API serves the stored data, and workers try to read the providers again`);
}

async function start(
  env: Environment,
  config: Config,
  content: Content,
  home: Home,
  closing: Disposer,
  logger: Logger,
  { demo }: UpOptions,
): Promise<void> {
  const supervisor = closing.use(new Supervisor({ log: logger }));
  const servers = await startServers(config, home.folder, { supervisor, notify: print });
  await migrate(servers.databaseUrl, { notify: print });
  const store = closing.use(openStore({ url: servers.databaseUrl, role: 'worker', connections: 2 }));
  await claimContent(store.db, content);
  const { organization, token } = await organizationAndToken(
    administration(store.db, decider(config, { reason: FIRST_START })),
    store,
    home,
    content === 'sample' || demo ? SAMPLE_ORGANIZATION : DEFAULT_ORGANIZATION,
  );

  const signIn = await operatorToken(store.db, decider(config, { reason: FIRST_START }), home);
  const processes = closing.use(new Supervisor({ log: logger }));
  const childEnv: NodeJS.ProcessEnv = {
    ...env,
    LOG_LEVEL: env.LOG_LEVEL ? config.settings.LOG_LEVEL : 'warn',
    DATABASE_URL: servers.databaseUrl,
    QUEUE_REDIS_URL: servers.queueRedisUrl,
    CACHE_REDIS_URL: servers.cacheRedisUrl,
    [OPS_BY_PARENT]: '1',
    ...linkOfConsole(config),
    ...(content === 'sample' ? await startSample(processes, env) : {}),
  };
  const running = readConfig(childEnv, FEATURE_CONFIG);
  const variables = variablesRead(childEnv, FEATURE_CONFIG);
  closing.use(announceRunning(home.folder, variables));
  await demo?.fill(running, logger);
  const script = programScript();
  const worker = { script, args: ['work'], nodeArgs: WORKER_NODE_ARGS, env: childEnv };
  await processes.start('work', () => startChild(worker));
  const { port } = await processes.start('serve', () =>
    startChild({ script, args: ['serve'], env: childEnv }),
  );
  const queueRedis = openLoggedRedis(
    { setting: 'QUEUE_REDIS_URL', url: servers.queueRedisUrl },
    'producer',
    logger,
  );
  closing.defer(() => queueRedis.disconnect());
  const metrics = async () => mergeMetrics(await processes.metrics(2000));
  const queues = openQueues(queueRedis, await queuePrefix(store.db), logger, FEATURES);
  const ops = { config: running, env: childEnv, logger, closing, queues: queues.all };
  const opened = await openParts({ ...ops, store });
  const opsUrl = await listenOps(ops, metrics, opened);

  const url = `http://${reachableHost(config.settings.HOST)}:${port}`;
  announceRunning(home.folder, variables, { api: url, operators: opsUrl });
  await firstSyncs(running, store);
  await published(store);
  const path = await examplePath(store.db);
  print('');
  if (content === 'sample')
    print(
      'This is the sample catalogue. For real data, set a source such as LINODE_URL, or start with --live.',
    );
  print(["operators' pages", opsUrl, signIn].join('  '));
  print(`organization      ${organization.slug}`);
  print('');
  print(`fleetbook ready ${url} token ${token}`);
  print(`curl -H 'Authorization: Bearer ${token}' '${url}${path}'`);
  demo?.onReady(opsUrl);
}

async function examplePath(db: Database): Promise<string> {
  const region = await exampleRegion(db);
  if (region) return `/v1/machines?provider=${region.providerId}&region=${region.id}`;
  const hasPlans = (await sourceStatus(db)).some(({ counted }) => counted === 'database plans');
  return hasPlans ? '/v1/databases' : '/v1/providers';
}

/** Returns OPS_URL for alert messages, if the port is known before the console listens. */
function linkOfConsole({ settings: { OPS_URL, OPS_HOST, OPS_PORT } }: Config): Record<string, string> {
  return OPS_URL !== undefined || OPS_PORT === 0
    ? {}
    : { OPS_URL: `http://${reachableHost(OPS_HOST)}:${OPS_PORT}` };
}

/** Starts the sample's upstreams as a process. Returns the settings that make them the sources. */
async function startSample(processes: Supervisor, env: Environment): Promise<Record<string, string>> {
  const sample = {
    script: ownScript('src/dev/sample/main'),
    // Its URLs are in the settings of other processes, so a restart needs the same port.
    env: { ...env, SAMPLE_PORT: String(await freePort()) },
  };
  const urls = await processes.start('sample', () => startChild(sample));
  return {
    ...sampleSettings({
      hetznerUrl: String(urls.hetznerUrl),
      linodeUrl: String(urls.linodeUrl),
      clustersUrl: String(urls.clustersUrl),
      lifecyclesUrl: String(urls.lifecyclesUrl),
    }),
    CATALOGUE_CURRENCY: SAMPLE_RATES.currency,
    CATALOGUE_RATES: `EUR:${SAMPLE_RATES.rates.EUR}`,
  };
}

/** Returns the first organization and a token: that of an earlier start, as long as it works. */
async function organizationAndToken(
  changes: Administration,
  store: Store,
  home: Home,
  wanted: { readonly slug: string; readonly name: string },
): Promise<{ organization: Organization; token: string }> {
  const organization =
    (await firstOrganization(store.db)) ?? (await changes.createOrganization(wanted.slug, wanted.name));
  if (!organization)
    throw new CommandFailure(
      `the organization ${wanted.slug} could not be created; create one: fleetbook org create`,
    );
  const stored = home.readToken('api');
  if (stored && (await tokenWorks(store.db, stored, organization.id))) return { organization, token: stored };
  const { token } = await changes.createToken(organization, { name: 'fleetbook up', scopes: SCOPES });
  home.writeToken('api', token);
  return { organization, token };
}

/** The operator of the person at this machine. */
const OPERATOR = 'up';

/** Returns the operator's token for the terminal: that of an earlier start if it is good, else a new one. */
async function operatorToken(db: Database, by: Decider, home: Home): Promise<string> {
  const isGood = async (token: string) => (await findTokens(db, [hashToken(token)]))[0]?.state === 'good';
  const before = home.readToken('operator');
  if (before !== undefined && (await isGood(before))) return `token ${before}`;
  const terms = { name: 'fleetbook up', expiresAt: null };
  const issued =
    (await createOperator(db, by, { name: OPERATOR, role: 'admin', token: terms })) ??
    (await issueToken(db, by, OPERATOR, terms));
  if (issued === undefined || !(await isGood(issued.token))) return `(the operator ${OPERATOR} is disabled)`;
  home.writeToken('operator', issued.token);
  return `token ${issued.token}`;
}

/** Waits for the first run of every source, and prints its result. A failed run also counts. */
async function firstSyncs(config: Config, store: Store): Promise<void> {
  const deadline = performance.now() + FIRST_SYNC_WITHIN_MS;
  const waiting = new Set(config.sources.map(({ id }) => id));
  while (waiting.size > 0 && performance.now() < deadline) {
    for (const status of await sourceStatus(store.db)) {
      const run = status.lastRun;
      if (status.disabled && waiting.delete(status.id))
        print(disabledNote(status.id, status.disabled, new Date()));
      if (!waiting.has(status.id) || !run || (run.outcome === 'running' && !status.verifiedAt)) continue;
      waiting.delete(status.id);
      const what = {
        catalogue: `${status.counted} published`,
        clusters: 'clusters',
        rates: 'currencies',
        lifecycles: 'release cycles',
      }[status.kind];
      print(
        run.error && !status.verifiedAt
          ? `${status.id}: ${run.outcome}: ${run.error}`
          : `${status.id}: ${status.published} ${what}, as of ${status.verifiedAt}`,
      );
      // A source without any usable row looks empty. The reasons state the remedy.
      if (status.published === 0)
        for (const line of leadingReasons(status.id, await quarantinedRows(store.db, status.id))) print(line);
    }
    if (waiting.size > 0) await sleep(100);
  }
  for (const [id, currencies] of await missingRates(store.db))
    for (const line of missingRateLines(currencies)) print(`${id}: ${line}`);
  for (const id of waiting) print(`${id}: its first sync still runs; see: fleetbook status`);
}

/** Waits until all documents are published, so that readers have the data of the first runs. */
async function published(store: Store): Promise<void> {
  const deadline = performance.now() + PUBLISHED_WITHIN_MS;
  while ((await dirtyDocuments(store.db, 1)).length > 0 && performance.now() < deadline) await sleep(20);
}
