import { Socket } from 'node:net';
import postgres from 'postgres';
import { postgresAddress } from '../domain/postgres-address.ts';
import { addArrayTypes } from './arrays.ts';
import { HostChoice } from './choose-host.ts';
import { codeOf, isLostConnection } from './errors.ts';
import { executeIn, forPooler, isQuery } from './pooled.ts';
import { wholeStatements } from './whole-statements.ts';

export type Sql = postgres.Sql<Record<string, never>>;
export type ClientOptions = postgres.Options<Record<never, postgres.PostgresType>>;

/** What of a client is ours. */
export interface ClientChoice {
  /** Milliseconds for which it is waited for a server that will do, where the URL names several; none unless given. */
  readonly patienceMs?: number | undefined;
}

/** Seconds that statements under way may take to finish once another connection of their client is lost. */
const GRACE_S = 3;
/** SQLSTATE `read_only_sql_transaction`. */
const READ_ONLY = '25006';
/** Milliseconds that a client is left alone: a server that is read only and the only one refuses every write. */
const YOUNG_MS = 1000;

/**
 * A pool of connections that survives the loss of any of them: restarts, failovers, `pg_terminate_backend`.
 *
 * postgres.js 3.4 does not. A lost connection keeps unsent statements in its buffer, behind a timer that it has
 * cancelled, and never sends again: a pool under load loses all its connections that way at once. A `rollback` on a lost
 * connection ends the process (porsager/postgres#1154, #1208), and so does the loss of one that still asks for the types
 * of arrays. Hence four rules: no connection asks for types (see arrays.ts), the whole client is replaced when it
 * loses its first connection, a transaction sends nothing on a lost connection, and no connection is reserved.
 */
export class Pool implements AsyncDisposable {
  /** Stays valid when the client behind it is replaced. For temporary tables there is `openSession`. */
  readonly sql: Sql;
  readonly #open: () => Sql;
  readonly #onLost: (() => void)[] = [];
  #client: Sql;
  /** What each transaction begins with, where a pooler takes nothing for a session. */
  readonly #local: string | undefined;
  #openedAt = 0;
  #choice: HostChoice | undefined;
  #ended = false;

  constructor(url: string, options: ClientOptions, { patienceMs = 0 }: ClientChoice = {}) {
    const address = postgresAddress(url);
    const pooled = address.isPooled ? forPooler(options.connection) : undefined;
    this.#local = pooled?.local;
    this.#open = () => {
      this.#choice?.[Symbol.dispose]();
      this.#choice = address.isChosen
        ? new HostChoice(address, { patienceMs, onUnfit: () => this.#replace(client, 0) })
        : undefined;
      const client: Sql = postgres(address.url, {
        ...options,
        ...(pooled && { connection: pooled.connection, prepare: false }),
        ...FOR_GOOD,
        ...socketOf(this.#choice),
        onclose: () => this.#replace(client),
      });
      convertValues(client);
      this.#openedAt = performance.now();
      return client;
    };
    this.#client = this.#open();
    this.sql = new Proxy(this.#client, {
      apply: (_, self, parts) => this.#heard(Reflect.apply(this.#client, self, parts)),
      get: (_, name) => {
        if (name === 'begin') return this.#begin(this.#client);
        if (name === 'unsafe') {
          const client = this.#client;
          return (...given: Parameters<Sql['unsafe']>) => this.#heard(client.unsafe(...given), client);
        }
        if (name === 'reserve') return refuseToReserve;
        return Reflect.get(this.#client, name);
      },
    });
  }

  /** Adds a listener that hears when connections were lost and are made anew: the server may be another one by then. */
  onLost(listener: () => void): void {
    this.#onLost.push(listener);
  }

  /** Replaces all connections by new ones: the present ones may lead nowhere. */
  renew(): void {
    this.#replace(this.#client);
  }

  #replace(lost: Sql, graceS = GRACE_S): void {
    if (this.#ended || lost !== this.#client) return;
    this.#client = this.#open();
    void lost.end({ timeout: graceS });
    for (const listener of this.#onLost) listener();
  }

  /** What a statement fails with is looked at before its caller sees it. Fragments and lists are left as they are. */
  #heard<T>(statement: T, client = this.#client): T {
    if (!isQuery(statement)) return statement;
    const { reject } = statement;
    statement.reject = (error) => {
      this.#look(error, client);
      reject(error);
    };
    if (this.#local !== undefined) executeIn(statement, this.#begin(client));
    return statement;
  }

  /** A server that takes no writes any more keeps its connections: they would fail for as long as they are kept. */
  #look(error: unknown, client: Sql): void {
    if (codeOf(error) === READ_ONLY && performance.now() - this.#openedAt > YOUNG_MS) this.#replace(client);
  }

  #begin(client: Sql) {
    const begin = beginOn(client, this.#local);
    return async (...given: Parameters<typeof begin>): Promise<unknown> => {
      try {
        return await begin(...given);
      } catch (error) {
        this.#look(error, client);
        throw error;
      }
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    this.#choice?.[Symbol.dispose]();
    await this.#client.end({ timeout: GRACE_S });
  }
}

/** A connection is never closed for its age: a closed one counts as lost. */
const FOR_GOOD = { idle_timeout: 0, max_lifetime: null, fetch_types: false } as const;

/** Types of dates and times. */
const INSTANTS = [1082, 1083, 1114, 1184];
const JSONS = [114, 3802];

/**
 * Dates and times are read as the text that Postgres sends: a JavaScript Date would drop the microseconds. Drizzle sets
 * its own client up in this way; here it holds for every client, whoever uses it. A Date is still taken as a parameter, and
 * for JSON its text or an object.
 */
export function convertValues({ options }: Sql): void {
  for (const type of INSTANTS) {
    options.parsers[type] = (text: string) => text;
    options.serializers[type] = (given: unknown) => (given instanceof Date ? given.toISOString() : given);
  }
  // Drizzle writes JSON itself, and has its clients take nothing but text for it.
  for (const type of JSONS)
    options.serializers[type] = (given: unknown) =>
      typeof given === 'string' ? given : JSON.stringify(given);
  // Drizzle replaces some of these besides.
  addArrayTypes({ options });
}

/**
 * A client of one connection, for temporary tables and transactions of many steps. It connects with the first statement.
 * Once its connection is lost every statement fails: a new connection would run the rest of a transaction on its own. The
 * server rolls back whatever was not committed when the connection ends.
 */
export function openClient(url: string, options: ClientOptions, { patienceMs = 0 }: ClientChoice = {}): Sql {
  const address = postgresAddress(url);
  if (address.isPooled)
    throw new Error(
      'a session cannot go through a pooler in transaction mode; name the server itself in DIRECT_DATABASE_URL',
    );
  const end = () => {
    choice?.[Symbol.dispose]();
    void client.end({ timeout: 0 });
  };
  const choice = address.isChosen ? new HostChoice(address, { patienceMs, onUnfit: end }) : undefined;
  const client: Sql = postgres(address.url, {
    ...options,
    ...FOR_GOOD,
    ...(choice ? socketOf(choice) : { socket: promptSocket }),
    max: 1,
    onclose: end,
  });
  convertValues(client);
  return wholeStatements(client);
}

/** The driver's option; its type does not know it. */
function socketOf(choice: HostChoice | undefined) {
  return choice ? { socket: () => choice.socket() } : {};
}

interface Server {
  readonly host: readonly string[];
  readonly port: readonly number[];
  readonly path: string | false;
}

/**
 * A socket without Nagle's algorithm, which delays every COPY by 40 ms. TLS checks the server's name by `host`.
 */
function promptSocket({ host: [host = ''], port: [port = 5432], path }: Server): Socket {
  const socket = new Socket().setNoDelay(true);
  if (path) socket.connect(path);
  else socket.connect(port, host);
  return Object.assign(socket, { host });
}

type TransactionSql = postgres.TransactionSql<Record<string, never>>;
type Steps = (sql: TransactionSql) => unknown;

/** @param local statements that every transaction begins with */
function beginOn(client: Sql, local?: string) {
  return async (...given: [Steps] | [string, Steps]): Promise<unknown> => {
    const [options, steps] = given.length === 1 ? ['', given[0]] : given;
    let lost: unknown;
    const work = wholeStatements(client).begin(options, (transaction) => {
      const refuseOnceLost = <Statement extends (...parts: never[]) => unknown>(statement: Statement) =>
        new Proxy(statement, {
          apply(target, self, parts) {
            if (lost !== undefined) throw lost;
            return Reflect.apply(target, self, parts);
          },
          // Drizzle's way to run a statement.
          get: (target, name) =>
            name === 'unsafe' ? refuseOnceLost(transaction.unsafe) : Reflect.get(target, name),
        });
      // Goes out with the first of the steps. Where it fails they fail too, and the transaction with this failure.
      if (local !== undefined) transaction.unsafe(local).catch(() => {});
      const sql = refuseOnceLost(transaction);
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

/**
 * Stays pending when the connection is lost. postgres.js reports the loss to the caller by itself; a rejection here would
 * make it send a rollback on the lost connection.
 */
function unlessLost<T>(results: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    results.then(resolve, (error: unknown) => {
      if (!isLostConnection(error)) reject(error);
    });
  });
}

function refuseToReserve(): never {
  throw new TypeError('a pool reserves no connection; open a session; see db/client.ts');
}
