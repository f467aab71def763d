/**
 * The naive server, with what the contract asks of an answer: a verified token with its scope, validated parameters, ETag and 304,
 * codings, the time of the data, limits by token, ids of requests, and metrics. It has no invalidations, so that it reads token and
 * document in every request. Each document is a hash in Redis, whose fields are ready to be sent.
 */
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { Redis } from 'ioredis';
import { Histogram } from 'prom-client';
import { hashToken, isWellFormedToken } from '../../../src/domain/token.ts';
import { bearerToken } from '../../../src/http/auth.ts';
import { accepts, allowedCodings, entityTag, matchingTag } from '../../../src/http/protocol/negotiate.ts';
import { RateLimit } from '../../../src/http/protocol/rate-limit.ts';
import { newRequestId } from '../../../src/http/protocol/request.ts';
import { onParentExit, reportReady } from '../../../src/processes/ipc.ts';

interface TokenRecord {
  readonly id: number;
  readonly organizationId: number;
  readonly scopes: readonly string[];
}

const FIELDS = ['hash', 'asOf', 'identity', 'gzip', 'br'] as const;
const ID = { type: 'integer', minimum: 1, maximum: 2_147_483_647 };

const redis = new Redis(process.env.REDIS_URL ?? '');
const limit = new RateLimit(1_000_000_000);
const seconds = new Histogram({
  name: 'seconds',
  help: 'Seconds of answers',
  labelNames: ['route', 'status'],
  buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2],
});
const app = Fastify({ genReqId: newRequestId });
app.addHook('onResponse', (request, reply, done) => {
  seconds.observe(
    { route: request.routeOptions.url ?? '', status: reply.statusCode },
    reply.elapsedTime / 1000,
  );
  done();
});

async function tokenOf({ headers }: FastifyRequest, scope: string): Promise<TokenRecord> {
  const token = bearerToken(headers.authorization);
  const stored =
    token && isWellFormedToken(token) ? await redis.get(`whole:token:${hashToken(token)}`) : null;
  const record = stored === null ? undefined : (JSON.parse(stored) as TokenRecord);
  if (!record) throw Object.assign(new Error('The token is not valid.'), { statusCode: 401 });
  if (!record.scopes.includes(scope))
    throw Object.assign(new Error('insufficient scope'), { statusCode: 403 });
  if (limit.count(record.id).isExceeded) throw Object.assign(new Error('too many'), { statusCode: 429 });
  return record;
}

async function send(request: FastifyRequest, reply: FastifyReply, key: string): Promise<FastifyReply> {
  const { headers } = request;
  if (!accepts(headers)) return reply.code(406).send({ error: 'not acceptable' });
  const [hash, asOf, identity, gzip, br] = await redis.hmgetBuffer(key, ...FIELDS);
  if (!hash || !identity) return reply.code(404).send({ error: 'not found' });
  const bodies = { identity, gzip, br };
  const allowed = allowedCodings(headers['accept-encoding'] as string | undefined);
  const coding = allowed.find((each) => bodies[each]) ?? 'identity';
  const tag = entityTag(hash.toString(), coding);
  reply.headers({
    'x-request-id': request.id,
    'cache-control': 'private, no-cache',
    vary: 'Authorization, Accept-Encoding',
    'fleetbook-tier': 'redis',
    'fleetbook-as-of': String(asOf),
    etag: tag,
  });
  const condition = headers['if-none-match'];
  if (condition !== undefined && matchingTag(condition, hash.toString(), tag)) return reply.code(304).send();
  if (coding !== 'identity') reply.header('content-encoding', coding);
  return reply.type('application/json').send(bodies[coding] ?? identity);
}

app.get<{ Querystring: { provider: number; region: number } }>(
  '/v1/machines',
  {
    schema: {
      querystring: {
        type: 'object',
        required: ['provider', 'region'],
        properties: { provider: ID, region: ID },
      },
    },
  },
  async (request, reply) => {
    await tokenOf(request, 'machines:read');
    return send(request, reply, `whole:plain:machines:${request.query.region}`);
  },
);
app.get<{ Params: { id: number } }>(
  '/v1/machines/:id',
  { schema: { params: { type: 'object', required: ['id'], properties: { id: ID } } } },
  async (request, reply) => {
    await tokenOf(request, 'machines:read');
    return send(request, reply, `whole:plain:machine:${request.params.id}`);
  },
);
app.get('/organizations/v1/clusters', async (request, reply) => {
  const { organizationId } = await tokenOf(request, 'clusters:read');
  return send(request, reply, `whole:plain:clusters:${organizationId}`);
});
app.get<{ Params: { slug: string } }>('/organizations/v1/clusters/:slug', async (request, reply) => {
  const { organizationId } = await tokenOf(request, 'clusters:read');
  return send(request, reply, `whole:plain:cluster:${organizationId}:${request.params.slug}`);
});
const url = await app.listen({ host: '127.0.0.1', port: 0 });
reportReady({ port: Number(new URL(url).port) });
onParentExit(() => process.exit());
