/** The operators' server with operators: a real database, a test clock, and browsers with cookies. */
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify';
import type { Role } from '../../../src/domain/operator.ts';
import { createOperator } from '../../../src/features/operators/db/operators.ts';
import type { IssuedToken } from '../../../src/features/operators/db/tokens.ts';
import type { OidcSettings } from '../../../src/features/operators/settings.ts';
import { operatorsPart } from '../../../src/features/operators/sign-in/sign-in.ts';
import type { OpsDependencies } from '../../../src/ops/feature-routes.ts';
import { buildOps } from '../../../src/ops/server.ts';
import { OPERATOR, type Scene } from '../../sync/scene.ts';

export const TOKEN = 'the-token-of-the-operators';

export interface Clock {
  /** Milliseconds. */
  now: number;
}

/** @param clock of the sessions and the counts of failures */
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
/** Returns the token of the last operator that `addOperators` added under this name. */
export const issuedTo = (name: string): IssuedToken => issued.get(name) ?? unknown(name);
export const tokenOf = (name: string): string => issuedTo(name).token;
const unknown = (name: string): never => {
  throw new Error(`addOperators added no ${name}`);
};

/** Creates operators with these names and roles, each with one token. */
export async function addOperators(
  { store }: Pick<Scene, 'store'>,
  roles: Readonly<Record<string, Role>>,
): Promise<void> {
  for (const [name, role] of Object.entries(roles)) {
    const token = { name: null, expiresAt: null };
    issued.set(name, (await createOperator(store.db, OPERATOR, { name, role, token })) ?? unknown(name));
  }
}

/** The header of a current browser for a request of the page itself. */
const OWN_PAGE = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' };

/** Stores its cookies, like a browser. */
export class Browser {
  readonly cookies = new Map<string, string>();
  readonly #app: FastifyInstance;
  readonly #headers: Record<string, string>;

  constructor(app: FastifyInstance, headers: Record<string, string> = OWN_PAGE) {
    this.#app = app;
    this.#headers = headers;
  }

  async sendRequest(
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

  /** Sends a form, like a page. */
  form(url: string, fields: Readonly<Record<string, string>>): Promise<LightMyRequestResponse> {
    return this.sendRequest('POST', url, {
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' },
      payload: new URLSearchParams(fields).toString(),
    });
  }

  /** Signs an operator in with the form. The answer is 303. */
  signIn(name: string, token = tokenOf(name)): Promise<LightMyRequestResponse> {
    return this.form('/login', { token });
  }

  /** @param everywhere ends all sessions of the operator */
  signOut(everywhere = false): Promise<LightMyRequestResponse> {
    return this.form('/logout', everywhere ? { everywhere: 'true' } : {});
  }

  /** Returns the status of a request that needs a signed-in operator. */
  async status(): Promise<number> {
    return (await this.sendRequest('GET', '/api/session')).statusCode;
  }
}
