/** The only import of Drizzle, as CommonJS: as ES modules it took 0.8 s of CPU per command instead of 0.1 s. */
import { createRequire } from 'node:module';

export type { Column, SQL, SQLWrapper } from 'drizzle-orm';
export type { PgColumn, PgDatabase, PgTable, PgUpdateSetSource } from 'drizzle-orm/pg-core';
export type { PostgresJsQueryResultHKT } from 'drizzle-orm/postgres-js';

const require = createRequire(import.meta.url);

export const {
  DrizzleQueryError,
  and,
  asc,
  count,
  desc,
  eq,
  getTableColumns,
  getTableName,
  gt,
  gte,
  inArray,
  is,
  isNotNull,
  isNull,
  lt,
  lte,
  max,
  ne,
  not,
  notExists,
  notInArray,
  or,
  sql,
} = require('drizzle-orm') as typeof import('drizzle-orm');

export const {
  PgDialect,
  PgTransaction,
  alias,
  bigint,
  check,
  customType,
  foreignKey,
  getTableConfig,
  index,
  integer,
  jsonb,
  numeric,
  pgTable,
  primaryKey,
  text,
  timestamp,
  unionAll,
  unique,
  uniqueIndex,
} = require('drizzle-orm/pg-core') as typeof import('drizzle-orm/pg-core');

export const { drizzle } = require('drizzle-orm/postgres-js') as typeof import('drizzle-orm/postgres-js');
