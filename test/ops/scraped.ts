/** Metrics of the real programs after some work. */
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../../src/db/connection/connect.ts';
import { createOrganization } from '../../src/db/organizations.ts';
import { createToken } from '../../src/db/tokens.ts';
import { SAMPLE_HETZNER_TOKEN, SAMPLE_ORGANIZATION } from '../../src/dev/sample/upstream.ts';
import { freePort } from '../../src/processes/port.ts';
import { YEARLY } from '../support/day.ts';
import { faultyUpstream } from '../support/faulty-upstream.ts';
import { createDatabase } from '../support/postgres.ts';
import { CLI, startProgram } from '../support/program.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

const OPS_TOKEN = 'the-operators-token-of-these-tests';

export interface Scraped {
  /** The page of `work`. */
  readonly worker: string;
  /** The page of `serve` with two processes. */
  readonly api: string;
}

/**
 * Runs `work` on the sample's upstreams with a failing one, and `serve` with accepted and refused requests. Reads their
 * metrics.
 */
export async function scrapePrograms(): Promise<Scraped> {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(await mkdtempDisposable(join(tmpdir(), 'fleetbook-scraped-')));
  const db = opened.use(await createDatabase());
  const redis = opened.use(await startTestRedis());
  const upstream = opened.use(await faultyUpstream());
  const store = opened.use(openStore({ url: db.url, role: 'worker', connections: 1 }));
  const { slug, name } = SAMPLE_ORGANIZATION;
  const organization = await createOrganization(store.db, slug, name);
  const { token } = await createToken(store.db, {
    organizationId: organization?.id ?? 0,
    scopes: ['clusters:read', 'machines:read'],
  });
  upstream.behaviours.linode = { status: 404 };
  const env = {
    PATH: process.env.PATH,
    DATABASE_URL: db.url,
    REDIS_URL: redis.url,
    OPS_TOKEN,
    LOG_LEVEL: 'error',
    CATALOGUE_RATES: 'EUR:1.1750',
    HETZNER_URL: upstream.urls.hetzner,
    HETZNER_TOKEN: SAMPLE_HETZNER_TOKEN,
    HETZNER_SCHEDULE: YEARLY,
    LINODE_URL: upstream.urls.linode,
    LINODE_SCHEDULE: YEARLY,
    CLUSTERS_URL: upstream.urls.clusters,
    CLUSTERS_SCHEDULE: YEARLY,
  };
  const [port, workOps, serveOps] = [await freePort(), await freePort(), await freePort()];
  const work = opened.use(await startProgram(CLI, ['work'], { env: { ...env, OPS_PORT: String(workOps) } }));
  const serve = opened.use(
    await startProgram(CLI, ['serve', '--processes', '2'], {
      env: {
        ...env,
        // Another address of the same server, which a reader may take for a replica.
        READER_DATABASE_URL: `${db.url}?connect_timeout=5`,
        PORT: String(port),
        OPS_PORT: String(serveOps),
        SNAPSHOT_DIR: folder.path,
      },
    }),
  );
  const read = async (opsPort: number) => {
    const headers = { authorization: `Bearer ${OPS_TOKEN}` };
    const answer = await fetch(`http://127.0.0.1:${opsPort}/metrics`, { headers }).catch(() => undefined);
    return (await answer?.text()) ?? '';
  };
  /** Reads a page until it contains all of these. */
  const readUntil = async (opsPort: number, ...wanted: readonly RegExp[]) => {
    const readPage = async () => {
      const text = await read(opsPort);
      return wanted.every((each) => each.test(text)) && text;
    };
    try {
      return await until(readPage);
    } catch (error) {
      throw new Error(`the programs say:\n${work.output()}${serve.output()}`, { cause: error });
    }
  };
  await readUntil(workOps, /^fleetbook_source_failed_runs\{source="linode".*\} [1-9]/m);
  await store.sql`
    insert into quarantined_rows (source_id, row_key, reason, code) values ('linode', 'a', 'ram is missing', 'invalid')`;
  const worker = await readUntil(
    workOps,
    /^fleetbook_source_quarantined_by_reason\{/m,
    /^fleetbook_sync_runs_total\{.*outcome="changed"/m,
    /^fleetbook_sync_runs_total\{.*outcome="failed"/m,
    /^fleetbook_cache_compared_documents_total\{/m,
    /^fleetbook_cache_lag_seconds_count/m,
    /^fleetbook_queue_jobs\{/m,
  );
  await readUntil(serveOps, /^fleetbook_serve_processes_ready\{.*\} 2$/m);
  const fetchPath = (path: string, authorization = `Bearer ${token}`) =>
    fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization } });
  for (let i = 0; i < 4; i += 1) {
    await (await fetchPath('/v1/clusters')).text();
    await (await fetchPath('/v1/providers')).text();
    await (await fetchPath('/v1/clusters', 'Bearer a-guess')).text();
  }
  // A stream has a separate histogram.
  const stream = await fetch(`http://127.0.0.1:${port}/v1/changes`, {
    headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' },
  });
  await stream.body?.cancel();
  const api = await readUntil(
    serveOps,
    /^fleetbook_http_requests_total\{.*status="200"/m,
    /^fleetbook_http_requests_total\{.*status="401"/m,
    /^fleetbook_http_lasting_request_duration_seconds_count\{/m,
    /^fleetbook_fenced_reads_total\{/m,
  );
  return { worker, api };
}
