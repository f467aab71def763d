/**
 * All of Drizzle that is used. It is imported here alone, and as CommonJS: its ES modules end in `.js`, and for each import
 * of one Node asks for the type of the package and copies its package.json, 180 kB of it. A command that writes took 0.8 s
 * of CPU time for that, and takes 0.1 s this way.
 */
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
  gt,
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
  PgTransaction,
  alias,
  bigint,
  boolean,
  check,
  customType,
  date,
  doublePrecision,
  foreignKey,
  getTableConfig,
  index,
  integer,
  jsonb,
  numeric,
  pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
  unionAll,
  unique,
  uniqueIndex,
  uuid,
} = require('drizzle-orm/pg-core') as typeof import('drizzle-orm/pg-core');

export const { drizzle } = require('drizzle-orm/postgres-js') as typeof import('drizzle-orm/postgres-js');
