import { PostgreSqlContainer, type StartedPostgreSqlContainer } from '@testcontainers/postgresql';
import { RedisContainer, type StartedRedisContainer } from '@testcontainers/redis';

export const POSTGRES_IMAGE = process.env.FLEETBOOK_TEST_POSTGRES_IMAGE || 'postgres:18-alpine';
export const REDIS_IMAGE = process.env.FLEETBOOK_TEST_REDIS_IMAGE || 'redis:8-alpine';

/** PostgreSQL from the official image; its user is a superuser. `await using` removes it. */
export function startPostgresContainer(): Promise<StartedPostgreSqlContainer> {
  return new PostgreSqlContainer(POSTGRES_IMAGE).start();
}

/** Redis from the official image, with docker-compose.yml's settings for the queues' server. */
export function startRedisContainer(): Promise<StartedRedisContainer> {
  return new RedisContainer(REDIS_IMAGE)
    .withCommand(['redis-server', '--maxmemory-policy', 'noeviction', '--appendonly', 'yes'])
    .start();
}
