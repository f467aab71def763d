/** A naive server: Fastify that reads prepared JSON from Redis in every request, and below `/organizations` the token before it. */
import Fastify, { type FastifyReply } from 'fastify';
import { Redis } from 'ioredis';
import { hashToken } from '../../../src/domain/token.ts';
import { onParentExit, reportReady } from '../../../src/processes/ipc.ts';

const redis = new Redis(process.env.REDIS_URL ?? '');
const app = Fastify();

async function send(reply: FastifyReply, key: string): Promise<FastifyReply> {
  const json = await redis.get(key);
  if (json === null) return reply.code(404).send({ error: 'not found' });
  return reply.type('application/json').send(json);
}

app.get<{ Querystring: { region: string } }>('/v1/machines', (request, reply) =>
  send(reply, `plain:machines:${request.query.region}`),
);
app.get<{ Params: { id: string } }>('/v1/machines/:id', (request, reply) =>
  send(reply, `plain:machine:${request.params.id}`),
);
app.get('/v1/clusters', (_, reply) => send(reply, 'plain:clusters'));
app.get<{ Params: { slug: string } }>('/v1/clusters/:slug', (request, reply) =>
  send(reply, `plain:cluster:${request.params.slug}`),
);

async function organizationOf(authorization = ''): Promise<string> {
  const organization = await redis.get(`plain:token:${hashToken(authorization.slice('Bearer '.length))}`);
  if (organization === null) throw Object.assign(new Error('who is this?'), { statusCode: 401 });
  return organization;
}

app.get('/organizations/v1/clusters', async ({ headers }, reply) =>
  send(reply, `plain:clusters:${await organizationOf(headers.authorization)}`),
);
app.get<{ Params: { slug: string } }>(
  '/organizations/v1/clusters/:slug',
  async ({ headers, params }, reply) =>
    send(reply, `plain:cluster:${await organizationOf(headers.authorization)}:${params.slug}`),
);
const url = await app.listen({ host: '127.0.0.1', port: 0 });
reportReady({ port: Number(new URL(url).port) });
onParentExit(() => process.exit());
