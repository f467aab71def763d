/** Operators' accounts, for admins. */
import type { FastifyInstance } from 'fastify';
import type { Database } from '../../../db/connection/connect.ts';
import { listOperators } from '../../operators/db/operators.ts';
import type { OperatorsAnswer } from './api.ts';
import { ADMIN } from './organizations.ts';

export function addOperators(api: FastifyInstance, db: Database): void {
  api.get('/operators', ADMIN, async (): Promise<OperatorsAnswer> => ({ rows: await listOperators(db) }));
}
