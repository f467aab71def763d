/** Traces of the real programs in a collector. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore, type Store } from '../../../src/db/connection/connect.ts';
import { createOrganization } from '../../../src/db/organizations.ts';
import { createToken } from '../../../src/db/tokens.ts';
import { SAMPLE_HETZNER_TOKEN, SAMPLE_ORGANIZATION } from '../../../src/dev/sample/upstream.ts';
import { openTracing } from '../../../src/features/tracing/tracing.ts';
import { freePort } from '../../../src/processes/port.ts';
import { startPublisher } from '../../snapshot/published.ts';
import { YEARLY } from '../../support/day.ts';
import { type FaultyUpstream, faultyUpstream } from '../../support/faulty-upstream.ts';
import { fleetbook } from '../../support/fleetbook.ts';
import { createDatabase } from '../../support/postgres.ts';
import { CLI, type Program, SOURCES, startProgram } from '../../support/program.ts';
import { startTestRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { loadedModules } from './loaded-modules.ts';
import { type ReceivedSpan, startTraceReceiver, type TraceReceiver } from './trace-receiver.ts';

const opened = new AsyncDisposableStack();
let store: Store;
let upstream: FaultyUpstream;
let receiver: TraceReceiver;
let env: Record<string, string>;
let token: string;

beforeAll(async () => {
  const db = opened.use(await createDatabase());
  const redis = opened.use(await startTestRedis());
  store = opened.use(openStore({ url: db.url, role: 'worker', connections: 1 }));
  opened.use(await startPublisher(store.db, redis.url));
  upstream = opened.use(await faultyUpstream());
  receiver = opened.use(await startTraceReceiver());
  const organization = await createOrganization(store.db, SAMPLE_ORGANIZATION.slug, SAMPLE_ORGANIZATION.name);
  const scopes = ['clusters:read', 'machines:read'] as const;
  ({ token } = await createToken(store.db, { organizationId: organization?.id ?? 0, scopes }));
  env = {
    PATH: process.env.PATH ?? '',
    DATABASE_URL: db.url,
    REDIS_URL: redis.url,
    LOG_LEVEL: 'debug',
    HETZNER_URL: upstream.urls.hetzner,
    HETZNER_TOKEN: SAMPLE_HETZNER_TOKEN,
    HETZNER_SCHEDULE: YEARLY,
    CATALOGUE_RATES: 'EUR:1.1750',
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_BSP_SCHEDULE_DELAY: '50',
  };
});
afterAll(() => opened.disposeAsync());

const ofTrace = (traceId: string) => receiver.spans.filter((span) => span.traceId === traceId);

/** Spans whose parent is not in the trace. */
function roots(spans: readonly ReceivedSpan[]): readonly ReceivedSpan[] {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  return spans.filter(({ parentSpanId }) => !ids.has(parentSpanId));
}

/** Returns the trace of a span once all parents and a span of each name have arrived: a parent is sent after its children. */
async function wholeTrace(
  isOf: (span: ReceivedSpan) => boolean,
  names: readonly (string | RegExp)[],
): Promise<readonly ReceivedSpan[]> {
  const { traceId } = await until(() => receiver.spans.find(isOf));
  const hasName = (wanted: string | RegExp) =>
    ofTrace(traceId).some(({ name }) => (typeof wanted === 'string' ? name === wanted : wanted.test(name)));
  await until(() => roots(ofTrace(traceId)).length === 1 && names.every(hasName), {
    what: `a trace with one root and ${names.join(', ')}`,
  });
  return ofTrace(traceId);
}

const STAGES = ['run', 'sync read', 'GET', 'sync compare', 'sync write', 'sync commit'];
const PUBLICATION = ['publish', 'postgres read', 'cache write'];

const lines = (program: Program) =>
  program
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('tracing', () => {
  it('makes one connected trace of a sync, from the slot to the publication, and leaves no secret in it', async () => {
    await using work = await startProgram(CLI, ['work'], {
      env: { ...env, OPS_PORT: String(await freePort()) },
    });
    const spans = await wholeTrace(
      ({ name, service }) => name === 'run' && service === 'fleetbook-work',
      [/^add sync/, 'process sync', ...STAGES, ...PUBLICATION],
    );
    const [root] = roots(spans);
    expect(root?.name).toMatch(/^add sync/);
    const run = spans.find(({ name }) => name === 'run');
    const [stored] = await store.sql<{ id: string }[]>`select id from sync_runs where source_id = 'hetzner'`;
    expect(run?.attributes).toMatchObject({
      'fleetbook.source': 'hetzner',
      'fleetbook.run': Number(stored?.id),
      'fleetbook.outcome': 'changed',
    });
    const below = (parent: string | undefined) => spans.filter(({ parentSpanId }) => parentSpanId === parent);
    const read = spans.find(({ name }) => name === 'sync read');
    expect(below(run?.spanId)).toContain(read);
    const requests = below(read?.spanId).filter(({ attributes }) => 'http.request.method' in attributes);
    expect(requests.length).toBeGreaterThan(0);
    expect(JSON.stringify(receiver.spans)).not.toContain(`"${SAMPLE_HETZNER_TOKEN}"`);
    const synced = await until(() => lines(work).find(({ msg }) => msg === 'synced'));
    expect(synced).toMatchObject({ trace_id: run?.traceId, run: Number(stored?.id) });
    // The publisher may need several rounds.
    const rounds = () => ofTrace(run?.traceId ?? '').filter(({ name }) => name === 'publish');
    const written = () =>
      rounds().flatMap(({ spanId }) =>
        ofTrace(run?.traceId ?? '').filter((each) => each.parentSpanId === spanId),
      );
    await until(() =>
      written().some(
        ({ name, attributes }) => name === 'cache write' && attributes['fleetbook.document'] === 'region',
      ),
    );
    // Housekeeping begins no trace. A span may arrive before the span that names its trace.
    const strays = () =>
      receiver.spans.filter(
        ({ traceId }) => !ofTrace(traceId).some(({ name }) => /^(add|process) sync|^run$/.test(name)),
      );
    await until(() => strays().length === 0, { what: 'spans of syncs alone' });
  });

  it('continues the trace of a request through Redis and PostgreSQL', async () => {
    const port = await freePort();
    await using serve = await startProgram(CLI, ['serve'], {
      env: { ...env, PORT: String(port), OPS_PORT: String(await freePort()), LOG_LEVEL: 'debug' },
    });
    const fetchPath = (path: string, traceparent?: string) =>
      fetch(`http://127.0.0.1:${port}${path}`, {
        headers: { authorization: `Bearer ${token}`, ...(traceparent && { traceparent }) },
      }).catch(() => undefined);
    // The reader uses the cache once it has received the publisher's announcement.
    await until(async () => {
      const ready = (await (await fetchPath('/readyz'))?.json()) as { checks: { cache: string } } | undefined;
      return ready?.checks.cache === 'ok';
    });
    const traceId = randomBytes(16).toString('hex');
    const caller = randomBytes(8).toString('hex');
    const answer = await fetchPath('/v1/clusters', `00-${traceId}-${caller}-01`);
    expect(answer?.status).toBe(200);
    const isOf = (id: string) => (span: ReceivedSpan) => span.traceId === id && span.parentSpanId === caller;
    const spans = await wholeTrace(isOf(traceId), ['cache read']);
    const [server] = roots(spans);
    expect(server).toMatchObject({
      service: 'fleetbook-serve',
      name: 'GET /v1/clusters',
      parentSpanId: caller,
      isError: false,
      attributes: {
        'http.route': '/v1/clusters',
        'http.response.status_code': 200,
        'fleetbook.request_id': answer?.headers.get('x-request-id'),
      },
    });
    const read = spans.filter(({ name }) => name === 'cache read');
    expect(read.map(({ attributes }) => attributes['fleetbook.document'])).toContain('clusters');
    const history = randomBytes(16).toString('hex');
    const [machine] = await store.sql<{ id: number }[]>`select id from machines order by id limit 1`;
    expect(
      (await fetchPath(`/v1/machines/${machine?.id}/prices`, `00-${history}-${caller}-01`))?.status,
    ).toBe(200);
    const reads = await wholeTrace(isOf(history), ['postgres read']);
    expect(new Set(reads.map(({ attributes }) => attributes['db.system.name']))).toContain('postgresql');
    await until(async () => (await fetchPath('/v1/clusters'))?.headers.get('fleetbook-tier') === 'memory');
    // The hot path answers the repeated request without a span. The next request's span shows that no span is late.
    const again = randomBytes(16).toString('hex');
    await fetchPath('/v1/clusters', `00-${again}-${caller}-01`);
    const unknown = randomBytes(16).toString('hex');
    const missed = await fetchPath('/v1/nowhere/in-the-path?q=in-the-query', `00-${unknown}-${caller}-01`);
    expect(missed?.status).toBe(404);
    const [notFound] = await wholeTrace(isOf(unknown), []);
    expect(notFound).toMatchObject({ name: 'GET *', attributes: { 'http.response.status_code': 404 } });
    expect(ofTrace(again)).toEqual([]);
    for (const secret of [token, 'in-the-path', 'in-the-query'])
      expect(JSON.stringify(receiver.spans)).not.toContain(secret);
    expect(lines(serve)).toContainEqual(expect.objectContaining({ msg: 'answered', trace_id: traceId }));
    expect(receiver.spans.filter(({ name }) => name.includes('healthz'))).toEqual([]);
  });

  it('makes a trace of a manual sync', async () => {
    const { code, stderr } = await fleetbook(['sync', 'hetzner'], env);
    expect([code, stderr.includes('Error')]).toEqual([0, false]);
    const spans = await wholeTrace(
      ({ name, service }) => name === 'run' && service === 'fleetbook-sync',
      STAGES,
    );
    expect(roots(spans).map(({ name }) => name)).toEqual(['run']);
  });
});

describe('tracing without configuration', () => {
  const PACKAGES = /node_modules\/(?:@opentelemetry\/(?!api\/)|bullmq-otel)/;
  const off = () => Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('OTEL_')));
  const needless = (modules: readonly string[]) => modules.filter((path) => PACKAGES.test(path));

  const sync = (of: Record<string, string>) => fleetbook(['sync', 'hetzner'], of, '', SOURCES);

  it('loads no package of OpenTelemetry', async () => {
    const on = await loadedModules((more) => sync({ ...env, ...more }));
    expect(needless(on.modules)).not.toEqual([]);
    const without = await loadedModules((more) => sync({ ...off(), ...more }));
    expect(without.result.code).toBe(0);
    expect(needless(without.modules)).toEqual([]);
    const serve = await loadedModules(async (more) => {
      const port = await freePort();
      const ports = { PORT: String(port), OPS_PORT: String(await freePort()) };
      await using program = await startProgram(SOURCES, ['serve'], { env: { ...off(), ...ports, ...more } });
      const ready = async () =>
        (await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined))?.status === 200;
      await until(ready);
      return program.pid;
    });
    expect(serve.modules).toContain('src/app/processes/serve.ts');
    expect(needless(serve.modules)).toEqual([]);
  });

  it('is off', async () => {
    expect(await openTracing({}, 'serve')).toBeUndefined();
    const off = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', OTEL_SDK_DISABLED: 'true' };
    expect(await openTracing(off, 'serve')).toBeUndefined();
  });

  it.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, /^OTEL_EXPORTER_OTLP_ENDPOINT must be a URL/],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4317', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
      /^OTEL_EXPORTER_OTLP_PROTOCOL must be http\/json, or left out; it is "grpc"/,
    ],
  ])('prevents the start with a wrong setting: %o', async (given, message) => {
    await expect(openTracing(given, 'work')).rejects.toThrow(message);
  });
});
