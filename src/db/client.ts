import { Socket } from 'node:net';
import postgres from 'postgres';

export type Sql = postgres.Sql<Record<string, never>>;
type ClientOptions = postgres.Options<Record<never, postgres.PostgresType>>;

/** Statements under way get so long when the connection of one of their neighbours is lost. */
const GRACE_S = 3;

/**
 * A pool of connections that survives the loss of any of them: restarts, failovers, `pg_terminate_backend`.
 *
 * postgres.js 3.4 does not: what a lost connection had not sent yet stays in its buffer behind a timer that it has
 * cancelled, so that it never sends again (a pool under load loses all its connections that way at once), and a
 * `rollback` on a lost connection ends the process (porsager/postgres#1154, #1208). Hence a client is used until the
 * first of its connections is lost and then replaced whole, nothing is said on a lost connection of a transaction, and
 * none is reserved.
 */
export class Pool<Extra> implements AsyncDisposable {
  /** Stays valid when the client behind it is replaced. For temporary tables there is `Session`. */
  readonly sql: Sql;
  readonly #open: () => Sql;
  readonly #extend: (client: Sql) => Extra;
  #client: Sql;
  #extra: Extra;
  #ended = false;

  /** @param extend makes what is kept beside each client, e.g. Drizzle's view of it */
  constructor(url: string, options: ClientOptions, extend: (client: Sql) => Extra) {
    this.#extend = extend;
    this.#open = () => {
      const client: Sql = postgres(url, { ...options, ...FOR_GOOD, onclose: () => this.#replace(client) });
      return client;
    };
    this.#client = this.#open();
    this.#extra = extend(this.#client);
    this.sql = new Proxy(this.#client, {
      apply: (_, self, parts) => Reflect.apply(this.#client, self, parts),
      get: (_, name) => {
        if (name === 'begin') return beginOn(this.#client);
        if (name === 'reserve') return refuseToReserve;
        return Reflect.get(this.#client, name);
      },
    });
  }

  get extra(): Extra {
    return this.#extra;
  }

  /** Leaves the connections there are, which may lead nowhere, for new ones. */
  renew(): void {
    this.#replace(this.#client);
  }

  #replace(lost: Sql): void {
    if (this.#ended || lost !== this.#client) return;
    this.#client = this.#open();
    this.#extra = this.#extend(this.#client);
    void lost.end({ timeout: GRACE_S });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    await this.#client.end({ timeout: GRACE_S });
  }
}

/** Only a loss closes a connection: its end must not look like one. */
const FOR_GOOD = { idle_timeout: 0, max_lifetime: null } as const;

/** One connection of its own, for temporary tables and a transaction of many steps. Disposing ends it. */
export interface Session extends AsyncDisposable {
  readonly sql: SessionSql;
}

/** Statements of one session: what one leaves behind, the next finds. */
export interface SessionSql extends Sql {
  readonly inSession: true;
}

/**
 * Connects with the first statement. Once its connection is lost every statement fails: a new connection would run
 * the rest of a transaction on its own. Whatever was not committed when it ends is rolled back by the server.
 */
export function openSession(url: string, options: ClientOptions): Session {
  const connecting = SEVERAL_HOSTS.test(url) ? {} : { socket: promptSocket };
  const client: Sql = postgres(url, {
    ...options,
    ...FOR_GOOD,
    ...connecting,
    max: 1,
    onclose: () => void end(),
  });
  const end = () => client.end({ timeout: 0 });
  return { sql: Object.assign(client, { inSession: true as const }), [Symbol.asyncDispose]: end };
}

/** postgres.js tries one after the other then, which it leaves to nobody else. */
const SEVERAL_HOSTS = /^[^/]*\/\/[^/]*,/;

interface Server {
  readonly host: readonly string[];
  readonly port: readonly number[];
  readonly path: string | false;
}

/**
 * A socket that does not wait to be told of the arrival of what it sent before it sends more (Nagle's algorithm): that
 * is 40 ms for every COPY. `host` is what TLS checks the server's name by.
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
      const sql = new Proxy(transaction, {
        apply(statement, self, parts) {
          if (lost !== undefined) throw lost;
          return Reflect.apply(statement, self, parts);
        },
      });
      const results = steps(sql);
      return unlessLost(Array.isArray(results) ? Promise.all(results) : Promise.resolve(results));
    });
    try {
      return await work;
    } catch (error) {
      if (isLoss(error)) lost = error;
      throw error;
    }
  };
}

/**
 * Stays pending when the connection is lost: postgres.js tells the caller of that by itself, and would roll back on
 * the connection that is not there.
 */
function unlessLost<T>(results: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    results.then(resolve, (error: unknown) => {
      if (!isLoss(error)) reject(error);
    });
  });
}

function isLoss(error: unknown): boolean {
  if (error instanceof postgres.PostgresError) return error.severity === 'FATAL';
  return error instanceof Error && 'code' in error;
}

function refuseToReserve(): never {
  throw new TypeError('a pool reserves no connection; open a session; see store/client.ts');
}
