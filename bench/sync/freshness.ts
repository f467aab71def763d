/**
 * `npm run bench -- sync freshness`: the time from a change in a control plane to its answer in the API.
 */
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openStore } from '../../src/db/connection/connect.ts';
import { createOrganization } from '../../src/db/organizations.ts';
import { createToken } from '../../src/db/tokens.ts';
import { freePort } from '../../src/processes/port.ts';
import { requestAttempt } from '../../src/sync/runs/slots.ts';
import { FakeKubernetes } from '../../test/sources/clusters/fake-kubernetes.ts';
import { chi } from '../../test/sources/clusters/kubernetes-objects.ts';
import { serveEnvironment } from '../read/fleetbook.ts';
import { ROOT, startProgram } from '../read/program.ts';
import { type Bar, quantile } from '../support/bar.ts';
import { flag, openStage, readOptions, report, say } from '../support/harness.ts';

/** Clusters of each source. One of them changes. */
const CLUSTERS = 100;
const CHANGES = 120;
const WITHIN_MS = 20_000;
const BAR_MS = 2000;
/** A change that is not visible by then counts as lost. */
const LOST_MS = 30_000;
const YEARLY = '0 0 1 1 *';
/** The schedule of a source that is read every five minutes, the default for clusters. */
const INTERVAL_MS = 300_000;

const DEFAULTS = {
  provider: 'Bench',
  region: { code: 'here' },
  machine: { cpu: 2, ram: 4, ram_unit: 'Binary' },
};

interface Freshness {
  /** Milliseconds of each change, from the change on; of a polled source from the slot that follows it. */
  readonly watched: readonly number[];
  readonly polled: readonly number[];
}

const { json } = readOptions(
  `The time from a change in a control plane to its answer in the API of a real \`serve\`, with a real worker, PostgreSQL and Redis
between. It takes about a minute.`,
  { json: flag('prints JSON') },
);
const freshness = await measure();
report(barsOf(freshness), { json, freshness });

async function measure(): Promise<Freshness> {
  await using stage = await openStage();
  const { folder } = stage;

  const kubernetes = stage.use(
    await FakeKubernetes.start({
      installed: { 'clickhouse.altinity.com/v1': 'clickhouseinstallations' },
      token: 'bench',
    }),
  );
  for (let index = 0; index < CLUSTERS; index++) kubernetes.put(chi(`watched-${index}`));
  const feed = stage.use(await startFeed());

  const file = join(folder, 'sources.json');
  await writeFile(file, JSON.stringify(sources(kubernetes.url, feed.url)));
  const env = {
    DATABASE_URL: stage.url,
    REDIS_URL: stage.redisUrl,
    FLEETBOOK_CONFIG: file,
    KUBERNETES_BENCH_TOKEN: 'bench',
    LOG_LEVEL: 'warn',
  };
  const token = await tokenFor(stage.url);
  const program = async (command: string) =>
    startProgram({
      args: [join(ROOT, 'src/cli.ts'), command],
      env: serveEnvironment(env, await freePort()),
      logFile: join(folder, `${command}.log`),
      core: 'any',
    });
  const serve = stage.use(await program('serve'));
  stage.use(await program('work'));
  const replicas = readerOf(`http://127.0.0.1:${serve.details.port}`, token);
  await seen(() => replicas('watched-0'), 1);
  await seen(() => replicas('polled-0'), 1);

  say(`${CLUSTERS} clusters watched, ${CLUSTERS} polled; up to ${CHANGES} changes of each`);
  const watched = await changes(async (size) => {
    const began = performance.now();
    kubernetes.put(chi('watched-0', { size }));
    await seen(() => replicas('watched-0'), size);
    return performance.now() - began;
  });
  const store = stage.use(openStore({ url: stage.url, role: 'worker', connections: 1 }));
  const polled = await changes(async (size) => {
    feed.replicas = size;
    const began = performance.now();
    const slot = { schedule: 'polled', slot: new Date().toISOString() };
    await requestAttempt(store.db, slot, { cause: 'hand' });
    await seen(() => replicas('polled-0'), size);
    return performance.now() - began;
  });
  return { watched, polled };
}

/** Makes changes one after the other, at moments that are independent of all periodic work. */
async function changes(change: (size: number) => Promise<number>): Promise<number[]> {
  const times: number[] = [];
  const end = performance.now() + WITHIN_MS;
  for (let size = 2; times.length < CHANGES && performance.now() < end; size++) {
    await sleep(Math.random() * 100);
    times.push(await change(size));
  }
  return times;
}

/** @throws Error if the change never becomes visible */
async function seen(readNow: () => Promise<number | undefined>, wanted: number): Promise<void> {
  const end = performance.now() + LOST_MS;
  while ((await readNow()) !== wanted) {
    if (performance.now() > end) throw new Error(`a change was not seen within ${LOST_MS} ms`);
    await sleep(2);
  }
}

/** The number of replicas of the cluster with that slug, from the API. */
function readerOf(url: string, token: string) {
  return async (slug: string): Promise<number | undefined> => {
    const response = await fetch(`${url}/v1/clusters/${slug}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const body = (await response.json()) as { readonly replicas?: number };
    return response.ok ? body.replicas : undefined;
  };
}

async function tokenFor(databaseUrl: string): Promise<string> {
  await using store = openStore({ url: databaseUrl, role: 'worker', connections: 1 });
  const organization = await createOrganization(store.db, 'bench', 'Bench');
  if (organization === undefined) throw new Error('unreachable: the database is new');
  const scopes = ['clusters:read'] as const;
  return (await createToken(store.db, { organizationId: organization.id, scopes })).token;
}

function sources(kubernetesUrl: string, feedUrl: string): object {
  const common = { organization: 'bench', defaults: DEFAULTS, schedule: YEARLY };
  return {
    clusters: [
      {
        ...common,
        id: 'watched',
        adapter: 'kubernetes',
        url: kubernetesUrl,
        tokenEnv: 'KUBERNETES_BENCH_TOKEN',
      },
      { ...common, id: 'polled', adapter: 'json', url: feedUrl },
    ],
  };
}

interface Feed extends AsyncDisposable {
  readonly url: string;
  /** Of the first cluster. */
  replicas: number;
}

async function startFeed(): Promise<Feed> {
  const server = createServer((_, response) => {
    const rows = Array.from({ length: CLUSTERS }, (_, index) => ({
      name: `polled-${index}`,
      status: 'Active',
      shards: 1,
      replicas: index === 0 ? feed.replicas : 1,
      created_at: '2026-01-01T00:00:00Z',
    }));
    response.setHeader('content-type', 'application/json').end(JSON.stringify(rows));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const feed: Feed = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/clusters`,
    replicas: 1,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
  return feed;
}

function barsOf({ watched, polled }: Freshness): Bar[] {
  const [of, unit, limit] = [(times: readonly number[]) => `${times.length} changes`, 'ms', BAR_MS];
  const worst = INTERVAL_MS + quantile(polled, 0.99);
  return [
    { what: 'watched: change → readable, p50', found: quantile(watched, 0.5), unit, note: of(watched) },
    { what: 'watched: change → readable, p99', found: quantile(watched, 0.99), unit, limit },
    { what: 'polled: slot → readable, p50', found: quantile(polled, 0.5), unit, note: of(polled) },
    { what: 'polled: slot → readable, p99', found: quantile(polled, 0.99), unit, limit },
    {
      what: 'polled: change → readable, p99 of the worst moment',
      found: worst / 1000,
      unit: 's',
      limit: (INTERVAL_MS + BAR_MS) / 1000,
      note: 'just after a slot of a schedule of five minutes; computed',
    },
  ];
}
