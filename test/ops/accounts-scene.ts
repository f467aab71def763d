/** The operators' pages with accounts: real database, a clock of its own, browsers that keep their cookies. */
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify';
import { createOperator } from '../../src/db/queries/operators.ts';
import type { Role } from '../../src/domain/operator.ts';
import { hashPassword } from '../../src/domain/password.ts';
import { buildOps, type OpsDependencies } from '../../src/ops/server.ts';
import { OPERATOR, type Scene } from '../sync/scene.ts';

export const PASSWORD = 'correct horse battery';
export const TOKEN = 'the-token-of-the-operators';
const LIMITS = { idle: 3600, lifetime: 43_200 };

export interface Clock {
  /** Milliseconds. */
  now: number;
}

/** @param clock what the sessions and the counts of tries go by */
export async function openPages(
  { store }: Pick<Scene, 'store'>,
  clock: Clock,
  options: Partial<OpsDependencies> & { sessionKey?: string } = {},
): Promise<FastifyInstance> {
  const { sessionKey, accounts, ...others } = options;
  return buildOps({
    token: TOKEN,
    metrics: async () => '# the metrics\n',
    queues: [],
    accounts: { store, ...LIMITS, sessionKey, now: () => clock.now, ...accounts },
    ...others,
  });
}

let hash: Promise<string> | undefined;
/** Accounts of these names and roles, all with the same password. */
export async function addOperators(
  { store }: Pick<Scene, 'store'>,
  roles: Readonly<Record<string, Role>>,
): Promise<void> {
  hash ??= hashPassword(PASSWORD);
  for (const [name, role] of Object.entries(roles))
    await createOperator(store.db, OPERATOR, { name, role, passwordHash: await hash });
}

/** What a browser of today sends with a request of the page's own. */
const OWN_PAGE = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' };

/** Keeps the cookies that it gets, as a browser does. */
export class Browser {
  readonly cookies = new Map<string, string>();
  readonly #app: FastifyInstance;
  readonly #headers: Record<string, string>;

  constructor(app: FastifyInstance, headers: Record<string, string> = OWN_PAGE) {
    this.#app = app;
    this.#headers = headers;
  }

  async ask(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    url: string,
    { headers = {}, ...rest }: Omit<InjectOptions, 'method' | 'url'> = {},
  ): Promise<LightMyRequestResponse> {
    const cookie = [...this.cookies]
      .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
      .join('; ');
    const response = await this.#app.inject({
      method,
      url,
      ...rest,
      headers: { ...this.#headers, ...(cookie && { cookie }), ...headers },
    });
    for (const { name, value, maxAge } of response.cookies) {
      if (value === '' || maxAge === 0) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return response;
  }

  signIn(name: string, password = PASSWORD): Promise<LightMyRequestResponse> {
    return this.ask('POST', '/api/session', { payload: { name, password } });
  }

  /** The status of a request that only who is signed in may make. */
  async status(): Promise<number> {
    return (await this.ask('GET', '/api/session')).statusCode;
  }
}
