import { Socket } from 'node:net';
import postgres from 'postgres';
import { addArrayTypes } from './arrays.ts';
import { isLostConnection } from './errors.ts';

export type Sql = postgres.Sql<Record<string, never>>;
export type ClientOptions = postgres.Options<Record<never, postgres.PostgresType>>;

/** Seconds that statements under way may take to finish once another connection of their client is lost. */
const GRACE_S = 3;

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
  #client: Sql;
  #ended = false;

  constructor(url: string, options: ClientOptions) {
    this.#open = () => {
      const client: Sql = postgres(url, { ...options, ...FOR_GOOD, onclose: () => this.#replace(client) });
      readInstantsAsText(client);
      return client;
    };
    this.#client = this.#open();
    this.sql = new Proxy(this.#client, {
      apply: (_, self, parts) => Reflect.apply(this.#client, self, parts),
      get: (_, name) => {
        if (name === 'begin') return beginOn(this.#client);
        if (name === 'reserve') return refuseToReserve;
        return Reflect.get(this.#client, name);
      },
    });
  }

  /** Replaces all connections by new ones: the present ones may lead nowhere. */
  renew(): void {
    this.#replace(this.#client);
  }

  #replace(lost: Sql): void {
    if (this.#ended || lost !== this.#client) return;
    this.#client = this.#open();
    void lost.end({ timeout: GRACE_S });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    await this.#client.end({ timeout: GRACE_S });
  }
}

/** A connection is never closed for its age: a closed one counts as lost. */
const FOR_GOOD = { idle_timeout: 0, max_lifetime: null, fetch_types: false } as const;

/** Types of dates and times. */
const INSTANTS = [1082, 1083, 1114, 1184];

/**
 * Dates and times are read as the text that Postgres sends: a JavaScript Date would drop the microseconds. Drizzle sets
 * its own client up in this way; here it holds for every client, whoever uses it. A Date is still taken as a parameter.
 */
export function readInstantsAsText({ options }: Sql): void {
  for (const type of INSTANTS) {
    options.parsers[type] = (text: string) => text;
    options.serializers[type] = (given: unknown) => (given instanceof Date ? given.toISOString() : given);
  }
  // Drizzle replaces some of these besides.
  addArrayTypes({ options });
}

/**
 * A client of one connection, for temporary tables and transactions of many steps. It connects with the first statement.
 * Once its connection is lost every statement fails: a new connection would run the rest of a transaction on its own. The
 * server rolls back whatever was not committed when the connection ends.
 */
export function openClient(url: string, options: ClientOptions): Sql {
  const connecting = SEVERAL_HOSTS.test(url) ? {} : { socket: promptSocket };
  const client: Sql = postgres(url, {
    ...options,
    ...FOR_GOOD,
    ...connecting,
    max: 1,
    onclose: () => void client.end({ timeout: 0 }),
  });
  readInstantsAsText(client);
  return client;
}

/** With several hosts postgres.js tries one after the other, and only with sockets of its own. */
const SEVERAL_HOSTS = /^[^/]*\/\/[^/]*,/;

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

function beginOn(client: Sql) {
  return async (...given: [Steps] | [string, Steps]): Promise<unknown> => {
    const [options, steps] = given.length === 1 ? ['', given[0]] : given;
    let lost: unknown;
    const work = client.begin(options, (transaction) => {
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
