/** Clients of PostgreSQL: postgres.js 3.4.9 and what it lacks. Each part names the test that fails without it (decision 0079). */
import { Socket } from 'node:net';
import postgres from 'postgres';
import { type PostgresAddress, postgresAddress } from '../../domain/servers/postgres-address.ts';
import { drizzle, type PgDatabase, PgDialect, type PostgresJsQueryResultHKT, type SQL } from './drizzle.ts';
import { isLostConnection } from './errors.ts';

export type Sql = postgres.Sql<Record<string, never>>;
type TransactionSql = postgres.TransactionSql<Record<string, never>>;
type Steps = (sql: TransactionSql) => unknown;
type Begin = (...given: [Steps] | [string, Steps]) => Promise<unknown>;

export type ClientOptions = postgres.Options<Record<never, postgres.PostgresType>>;

/** Time for running statements after their client has lost another connection (s). */
const GRACE_S = 3;

/**
 * A pool of connections that survives the loss of any of them. It replaces the whole client of postgres.js at the first loss: a
 * lost connection of postgres.js never sends again (client.test.ts, "goes on under load while its connections are cut").
 */
export class Pool implements AsyncDisposable {
  /** Stays valid when the pool replaces its client. Temporary tables need `openConnection`. */
  readonly sql: Sql;
  readonly #open: () => Opened;
  readonly #onLost: (() => void)[] = [];
  #client: Opened;
  #isEnded = false;

  constructor(url: string, options: ClientOptions) {
    const address = postgresAddress(url);
    const { local, ...pooled } = address.isPooled ? forPooler(options.connection) : {};
    this.#open = () => {
      const client = open(address, { ...options, ...pooled }, () => this.#replace(client));
      return client;
    };
    this.#client = this.#open();
    const current = () => this.#client.sql;
    const begin = transactions(current, local);
    this.sql = facade(
      current,
      (query) => {
        if (local !== undefined) runInTransaction(query, begin);
      },
      begin,
    );
  }

  /** Adds a listener. It runs after a loss: new connections may lead to another server. */
  onLost(listener: () => void): void {
    this.#onLost.push(listener);
  }

  renew(): void {
    this.#replace(this.#client);
  }

  #replace(lost: Opened): void {
    if (this.#isEnded || lost !== this.#client) return;
    this.#client = this.#open();
    void lost.close(GRACE_S);
    for (const listener of this.#onLost) listener();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnded = true;
    await this.#client.close(GRACE_S);
  }
}

/**
 * Opens a client of one connection, for temporary tables and long transactions. It connects with the first statement. After a loss
 * every statement fails: a new connection would run the rest of a transaction alone (client.test.ts, "refuses everything once").
 */
function openClient(url: string, options: ClientOptions): Sql {
  const address = postgresAddress(url);
  if (address.isPooled)
    throw new Error(
      'temporary tables and long transactions do not work through a pooler in transaction mode; set DIRECT_DATABASE_URL to the address of the server itself',
    );
  const client = open(address, { ...options, max: 1 }, () => void client.close(0));
  const current = () => client.sql;
  return facade(current, sendWhole, transactions(current));
}

/** Drizzle on the pool, on a single connection or in a transaction. */
export type Database = PgDatabase<PostgresJsQueryResultHKT>;

export type ClientDatabase = Database & { readonly $client: Sql };

/** Drizzle on a single connection: temporary tables stay from one statement to the next. */
export type ConnectionDatabase = ClientDatabase & { readonly isConnection: true };

/** A single connection, for temporary tables and transactions of many steps. Disposing ends it. */
export interface Connection extends AsyncDisposable {
  readonly db: ConnectionDatabase;
  readonly sql: Sql;
}

export function openConnection(url: string, options: ClientOptions): Connection {
  const client = openClient(url, options);
  const db = Object.assign(databaseOn(client), { isConnection: true as const });
  return { db, sql: client, [Symbol.asyncDispose]: () => client.end({ timeout: 0 }) };
}

/**
 * Runs steps in a transaction, those of Drizzle and those of the client. A step on another connection of the pool may wait for ever:
 * transactions may hold all of them, and wait for the same.
 */
export const transactionOn = <T>(
  { $client }: ClientDatabase,
  steps: (tx: ClientDatabase) => Promise<T>,
): Promise<T> => inOneTransaction($client, '', (sql) => steps(databaseOn(sql)));

export function databaseOn(client: Sql): ClientDatabase {
  return drizzle(client);
}

const dialect = new PgDialect();

/** Runs a statement that readers repeat. PostgreSQL plans it once a connection, and one of `execute` each time. */
export async function executePrepared<Row extends object>(
  { $client }: ClientDatabase,
  statement: SQL,
): Promise<readonly Row[]> {
  const { sql, params } = dialect.sqlToQuery(statement);
  return $client.unsafe<Row[]>(sql, params as never[], { prepare: true });
}

interface Server {
  readonly host: readonly string[];
  readonly port: readonly number[];
  readonly path: string | false;
}

interface Opened {
  readonly sql: Sql;
  close(graceS: number): Promise<void>;
}

/** @param onLost called when a connection is lost */
function open(address: PostgresAddress, options: ClientOptions, onLost: () => void): Opened {
  const sockets = new Set<Socket>();
  const given: ClientOptions & { readonly socket: (server: Server) => unknown } = {
    ...options,
    types: TYPES,
    onclose: onLost,
    // A connection that closes for its age counts as lost.
    max_lifetime: null,
    // The driver ignores a failure of this query (client.test.ts, "a server that dies while a connection opens").
    fetch_types: false,
    socket: ({ host: [host = ''], port: [port = 5432], path }: Server) => {
      const socket = connectTo(host, port, path);
      sockets.add(socket.once('close', () => sockets.delete(socket)));
      return socket;
    },
  };
  const sql: Sql = postgres(address.url, given);
  return {
    sql,
    async close(timeout) {
      await sql.end({ timeout });
      // The driver only ends its side: a server that hangs would keep the process (stopping.system.test.ts, "Postgres too").
      for (const socket of sockets) socket.destroySoon();
    },
  };
}

/**
 * Opens a socket without Nagle's algorithm, which delays each COPY by 40 ms. TLS compares the server's name with `host`.
 * @param path of a Unix socket; false for a host
 */
function connectTo(host: string, port: number, path: string | false): Socket {
  const socket = new Socket().setNoDelay(true);
  return path ? socket.connect(path) : Object.assign(socket.connect(port, host), { host });
}

/**
 * Returns a stable client in front of the current one. Drizzle overwrites the parsers and serializers of its client, so it gets a
 * copy (client.test.ts, "come back as they were sent").
 * @param each called with each statement before it is sent
 */
function facade<Client extends Sql | TransactionSql>(
  current: () => Client,
  each: (statement: Query) => void,
  begin?: Begin,
): Client {
  const prepared = (statement: unknown) => {
    if (isQuery(statement)) each(statement);
    return statement;
  };
  let options: object | undefined;
  return new Proxy(current(), {
    apply: (_, self, parts) => prepared(Reflect.apply(current() as never, self, parts)),
    get(_, name) {
      const client = current();
      if (name === 'begin' && begin) return begin;
      if (name === 'unsafe')
        return (...given: Parameters<Sql['unsafe']>) => prepared(client.unsafe(...given));
      if (name === 'options') {
        options ??= { ...(client as Sql).options, parsers: {}, serializers: {} };
        return options;
      }
      return Reflect.get(client, name);
    },
  });
}

/**
 * Returns a `begin` that sends nothing on a lost connection: a statement or a `rollback` there ends the process
 * (porsager/postgres#1154, #1208; client.test.ts, "fails a transaction").
 * @param local statements at the start of each transaction
 */
function transactions(current: () => Sql, local?: string): Begin {
  return async (...given) => {
    const [options, steps] = given.length === 1 ? ['', given[0]] : given;
    let lost: unknown;
    const work = current().begin(options, (transaction) => {
      // Sent with the first step. If it fails, the steps fail too.
      if (local !== undefined) transaction.unsafe(local).catch(() => {});
      const sql = facade(
        () => transaction,
        (query) => {
          if (lost !== undefined) throw lost;
          sendWhole(query);
        },
      );
      const results = steps(sql);
      return unlessLost(Array.isArray(results) ? Promise.all(results) : Promise.resolve(results));
    });
    try {
      return await work;
    } catch (error) {
      if (isLostConnection(error)) lost = error;
      throw error;
    }
  };
}

/** Stays pending after a loss. postgres.js reports the loss itself; a rejection here would make it send a `rollback`. */
const unlessLost = (results: Promise<unknown>) =>
  results.catch((error: unknown) => {
    if (!isLostConnection(error)) throw error;
    return new Promise(() => {});
  });

interface Query {
  handler: (query: Query) => void;
  resolve(result?: unknown): void;
  reject(error: unknown): void;
}

function isQuery(value: unknown): value is Query {
  return value instanceof Promise && 'reject' in value && 'handler' in value;
}

/**
 * Sends a statement with parameters in one message. By default postgres.js first requests their types. A worker that hangs between
 * the two messages holds its locks for minutes (whole-statements.test.ts, decision 13). The pool does not use it: there such
 * statements would wait behind a slow one.
 */
function sendWhole(query: Query): void {
  Object.defineProperty(query, 'describeFirst', { get: () => false, set: () => {} });
}

/** Runs reads on one server in one snapshot, also if the address leads to several servers. */
export const inOneSnapshot = <T>(
  { $client }: ClientDatabase,
  read: (db: ClientDatabase) => Promise<T>,
): Promise<T> =>
  inOneTransaction($client, 'isolation level repeatable read read only', (sql) => read(databaseOn(sql)));

/**
 * Runs reads of one organization in one snapshot. In a reader's role, row-level security shows them its rows and the catalogue alone.
 * @param organizationId undefined for the catalogue alone
 */
export const inOrganization = <T>(
  db: ClientDatabase,
  organizationId: number | undefined,
  read: (db: ClientDatabase) => Promise<T>,
): Promise<T> =>
  inOneSnapshot(db, async (snapshot) => {
    // Sent at once, so the first read follows it without a round trip.
    const isSet = snapshot.$client`
      select set_config('app.org_id', ${organizationId === undefined ? '' : String(organizationId)}, true)`.execute();
    const [result] = await Promise.all([read(snapshot), isSet]);
    return result;
  });

/** Runs steps in a transaction, on one connection. Transactions inside it are parts of it. @param options of `begin` */
async function inOneTransaction<T>(sql: Sql, options: string, steps: (sql: Sql) => Promise<T>): Promise<T> {
  const { result } = await sql.begin(options, async (transaction) => {
    const begin = async (...given: unknown[]) => {
      const results = (given.at(-1) as Steps)(inside);
      return Array.isArray(results) ? Promise.all(results) : results;
    };
    const inside: Sql & TransactionSql = new Proxy(transaction as Sql & TransactionSql, {
      get: (target, name) => (name === 'begin' ? begin : Reflect.get(target, name)),
    });
    return { result: await steps(inside) };
  });
  return result;
}

/** Parameters that every pooler preserves for each client. */
const PRESERVED = ['application_name', 'TimeZone'];

/** A pooler in transaction mode loses all other parameters. Each transaction sets them (pgbouncer.system.test.ts, "acts in its role"). */
function forPooler(given: object = {}) {
  const entries = Object.entries(given);
  return {
    prepare: false,
    connection: Object.fromEntries(entries.filter(([name]) => PRESERVED.includes(name))),
    // Not `select set_config`: a transaction sets its isolation before its first query.
    local:
      entries
        .filter(([name]) => !PRESERVED.includes(name))
        .map(([name, value]) => `set local ${name} ${name === 'role' ? '' : '= '}'${value}'`)
        .join('; ') || 'select',
  };
}

/** Runs a statement in its own transaction. The caller gets the result after the commit. */
function runInTransaction(query: Query, begin: Begin): void {
  const { resolve, reject } = query;
  sendWhole(query);
  query.handler = () => {
    begin(async (transaction) => {
      // The statements at the start of the transaction go first.
      await undefined;
      const inner: unknown = transaction``;
      return new Promise((done, failed) => {
        Object.assign(query, { resolve: done, reject: failed });
        if (isQuery(inner)) inner.handler(query);
      });
    }).then(resolve, reject);
  };
}

/** A Date would drop microseconds. Drizzle also expects times as text, and serializes JSON itself. */
const asText = (text: string) => text;
const jsonOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

/** Includes arrays because connections do not fetch their types (client.test.ts, "come back as they were sent"). */
const TYPES = {
  unknown: { to: 0, from: [], serialize: textOf, parse: asText },
  time: { to: 1184, from: [1082, 1114, 1184], serialize: textOf, parse: asText },
  json: { to: 114, from: [114, 3802], serialize: jsonOf, parse: (text: string) => JSON.parse(text) },
  flags: arrayOf([1000], (text) => text === 't'),
  numbers: arrayOf([1005, 1007, 1021, 1022], Number),
  // Of bigint, text, varchar, timestamp, date, timestamptz, numeric, uuid.
  texts: arrayOf([1009, 1015, 1016, 1115, 1182, 1185, 1231, 2951], asText),
};

function arrayOf(types: [number, ...number[]], parse: (text: string) => string | number | boolean) {
  return { to: types[0], from: types, serialize: textOf, parse: (text: string) => parseArray(text, parse) };
}

const TOKEN = /[{}]|"((?:[^"\\]|\\.)*)"|[^{},"]+/gs;

/** Parses `{a,"b,c",NULL}` by way of JSON. Unusual bounds precede it: `[0:1]={a,b}`. */
function parseArray(text: string, parse: (text: string) => unknown): unknown {
  const json = text.replace(/^[^{]*=/, '').replaceAll(TOKEN, (token, quoted?: string) => {
    if (token === '{') return '[';
    if (token === '}') return ']';
    if (token === 'NULL') return 'null';
    return JSON.stringify(parse(quoted === undefined ? token : quoted.replaceAll(/\\(.)/gs, '$1')));
  });
  return JSON.parse(json);
}

/** Returns text that PostgreSQL parses for any type: types are unknown before a whole statement is sent. */
function textOf(value: unknown): string {
  if (value === undefined) throw new TypeError('an array for PostgreSQL contains undefined');
  if (Array.isArray(value)) return `{${value.map(elementOf).join(',')}}`;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString('hex')}`;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function elementOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? textOf(value) : `"${textOf(value).replaceAll(/["\\]/g, '\\$&')}"`;
}
