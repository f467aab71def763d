/** The operators' pages with operators: real database, a clock of its own, browsers that keep their cookies. */
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify';
import type { Role } from '../../../src/domain/operator.ts';
import { createOperator } from '../../../src/features/operators/db/operators.ts';
import type { IssuedToken } from '../../../src/features/operators/db/tokens.ts';
import type { OidcSettings } from '../../../src/features/operators/oidc.ts';
import { operatorsPart } from '../../../src/features/operators/sign-in/part.ts';
import { buildOps, type OpsDependencies } from '../../../src/ops/server.ts';
import { OPERATOR, type Scene } from '../../sync/scene.ts';

export const TOKEN = 'the-token-of-the-operators';

export interface Clock {
  /** Milliseconds. */
  now: number;
}

/** @param clock what the sessions and the counts of failures go by */
export async function openPages(
  { store }: Pick<Scene, 'store'>,
  clock: Clock,
  { oidc, ...others }: Partial<OpsDependencies> & { oidc?: OidcSettings } = {},
): Promise<FastifyInstance> {
  return buildOps({
    token: TOKEN,
    metrics: async () => '# the metrics\n',
    queues: [],
    parts: [operatorsPart({ store, oidc, now: () => clock.now })],
    db: store.db,
    now: () => clock.now,
    ...others,
  });
}

const issued = new Map<string, IssuedToken>();
/** The token of an operator that `addOperators` added last under this name. */
export const issuedTo = (name: string): IssuedToken => issued.get(name) ?? unknown(name);
export const tokenOf = (name: string): string => issuedTo(name).token;
const unknown = (name: string): never => {
  throw new Error(`addOperators added no ${name}`);
};

/** Operators of these names and roles, each with one token. */
export async function addOperators(
  { store }: Pick<Scene, 'store'>,
  roles: Readonly<Record<string, Role>>,
): Promise<void> {
  for (const [name, role] of Object.entries(roles)) {
    const token = { name: null, expiresAt: null };
    issued.set(name, (await createOperator(store.db, OPERATOR, { name, role, token })) ?? unknown(name));
  }
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

  /** Sends a form, as a page does. */
  form(url: string, fields: Readonly<Record<string, string>>): Promise<LightMyRequestResponse> {
    return this.ask('POST', url, {
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' },
      payload: new URLSearchParams(fields).toString(),
    });
  }

  /** Gives the login page the token of an operator; a sign-in answers 303. */
  signIn(name: string, token = tokenOf(name)): Promise<LightMyRequestResponse> {
    return this.form('/login', { token });
  }

  /** @param everywhere whether all sessions of the operator end */
  signOut(everywhere = false): Promise<LightMyRequestResponse> {
    return this.form('/logout', everywhere ? { everywhere: 'true' } : {});
  }

  /** The status of a request that only a signed-in operator may make. */
  async status(): Promise<number> {
    return (await this.ask('GET', '/api/session')).statusCode;
  }
}
