/**
 * A naive server: Fastify with a query to Postgres in every request, through Drizzle, in the reader's role and so
 * under the same row-level security. ORGANIZATION serves one organization to every client; without it, the bearer
 * token is looked up with another query.
 */
import { and, asc, eq, isNull, type SQL, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import Fastify from 'fastify';
import postgres from 'postgres';
import { clusters, disks, diskTypes, machines, providers, regions, users } from '../../../src/db/schema.ts';
import { hashToken } from '../../../src/domain/token.ts';
import { onParentExit, reportReady } from '../../../src/processes/ipc.ts';

const CONNECTIONS = 16;
const client = postgres(process.env.DATABASE_URL ?? '', {
  max: CONNECTIONS,
  connection: { role: 'fleetbook_reader', TimeZone: 'UTC' },
});
const db = drizzle(client);
const app = Fastify();

function readMachines(where: SQL | undefined) {
  return db
    .select({
      id: machines.id,
      name: machines.name,
      ram: sql`${machines.ram}`.mapWith(Number),
      cpu: machines.cpu,
      price: sql`${machines.price}`.mapWith(Number),
      ram_unit: machines.ramUnit,
      provider: { id: providers.id, name: providers.name },
      region: { id: regions.id, name: regions.name, code: regions.code },
    })
    .from(machines)
    .innerJoin(regions, eq(regions.id, machines.regionId))
    .innerJoin(providers, eq(providers.id, regions.providerId))
    .where(and(where, isNull(machines.excludedReason), isNull(machines.retiredAt)))
    .orderBy(asc(machines.price), asc(machines.id));
}

function readClusters(organizationId: number, where?: SQL) {
  return db.transaction(
    async (tx) => {
      await tx.execute(sql`select set_config('app.org_id', ${String(organizationId)}, true)`);
      return tx
        .select({
          name: clusters.name,
          slug: clusters.slug,
          region: { name: regions.name, code: regions.code },
          provider: { id: providers.id, name: providers.name },
          status: clusters.status,
          shards: clusters.shards,
          replicas: clusters.replicas,
          user: { first_name: users.firstName, last_name: users.lastName },
          machine: {
            ram: sql`${machines.ram}`.mapWith(Number),
            cpu: machines.cpu,
            id: machines.id,
            ram_unit: machines.ramUnit,
          },
          disks: sql`(
            select coalesce(json_agg(json_build_object(
              'type', json_build_object('name', ${diskTypes.name}, 'price', ${diskTypes.price}, 'unit', ${diskTypes.unit}),
              'size', ${disks.size}, 'unit', ${disks.unit}, 'autoscaling', ${disks.autoscaling})
              order by ${disks.position}), '[]')
            from ${disks} join ${diskTypes} on ${diskTypes.id} = ${disks.diskTypeId}
            where ${disks.clusterId} = ${clusters.id})`,
          created_at: sql<string>`to_char(${clusters.createdAt}, 'YYYY-MM-DD"T"HH24:MI:SS.US')`,
        })
        .from(clusters)
        .innerJoin(regions, eq(regions.id, clusters.regionId))
        .innerJoin(providers, eq(providers.id, regions.providerId))
        .innerJoin(users, eq(users.id, clusters.userId))
        .innerJoin(machines, eq(machines.id, clusters.machineId))
        .where(and(eq(clusters.organizationId, organizationId), isNull(clusters.retiredAt), where))
        .orderBy(asc(clusters.createdAt), asc(clusters.slug));
    },
    { accessMode: 'read only' },
  );
}

const fixed = process.env.ORGANIZATION;
async function organizationOf(authorization: string | undefined): Promise<number> {
  if (fixed !== undefined) return Number(fixed);
  const hash = Buffer.from(hashToken(authorization?.slice('Bearer '.length) ?? ''), 'hex');
  const rows = await db.execute<{ organization_id: number }>(
    sql`select organization_id from authenticate_token(${hash}) where not revoked`,
  );
  const [row] = rows;
  if (!row) throw Object.assign(new Error('who is this?'), { statusCode: 401 });
  return row.organization_id;
}

app.get<{ Querystring: { provider: string; region: string } }>('/v1/machines', ({ query }) =>
  readMachines(and(eq(regions.providerId, Number(query.provider)), eq(regions.id, Number(query.region)))),
);
app.get<{ Params: { id: string } }>('/v1/machines/:id', async ({ params }, reply) => {
  const [machine] = await readMachines(eq(machines.id, Number(params.id)));
  return machine ?? reply.code(404).send({ error: 'not found' });
});
app.get('/v1/clusters', async ({ headers }) => readClusters(await organizationOf(headers.authorization)));
app.get<{ Params: { slug: string } }>('/v1/clusters/:slug', async ({ headers, params }, reply) => {
  const [cluster] = await readClusters(
    await organizationOf(headers.authorization),
    eq(clusters.slug, params.slug),
  );
  return cluster ?? reply.code(404).send({ error: 'not found' });
});
const url = await app.listen({ host: '127.0.0.1', port: 0 });
reportReady({ port: Number(new URL(url).port) });
onParentExit(() => process.exit());
