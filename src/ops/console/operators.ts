/** Operators' accounts, for admins. */
import type { FastifyInstance } from 'fastify';
import type { Sql } from '../../db/client.ts';
import { listOperators } from '../../db/reads/operators.ts';
import type { OperatorsAnswer } from './api.ts';
import { ADMIN } from './organizations.ts';

export function addOperators(api: FastifyInstance, sql: Sql): void {
  api.get('/operators', ADMIN, async (): Promise<OperatorsAnswer> => ({ rows: await listOperators(sql) }));
}
