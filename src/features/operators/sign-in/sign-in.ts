/** The operators' part of their server: requests have a token, or a session of a token or OpenID Connect. */

import type { ServerResponse } from 'node:http';
import cookie from '@fastify/cookie';
import type { FastifyInstance } from 'fastify';
import type { Store } from '../../../db/connection/connect.ts';
import type { Gate, OpsPart, SignIn } from '../../../ops/feature-routes.ts';
import { listOperators } from '../db/operators.ts';
import { findTokens } from '../db/tokens.ts';
import type { OidcSettings } from '../settings.ts';
import { addOidcRoutes } from './oidc-routes.ts';
import { addSignInRoutes, LOGIN, tokenCheck } from './routes.ts';
import { openSessions } from './sessions.ts';

export interface Operators {
  /** In the worker's role: the reader's role may not read operators. */
  readonly store: Pick<Store, 'db'>;
  readonly oidc?: OidcSettings | undefined;
  readonly now?: () => number;
}

export function operatorsPart({ store: { db }, oidc, now = Date.now }: Operators): OpsPart {
  return {
    async addSignIn(app: FastifyInstance, { isOpsToken, refusals }: Gate): Promise<SignIn> {
      const sessions = openSessions(db, now);
      const check = tokenCheck(db, refusals);
      const open = openResponses(async (keys) => {
        const [tokens, live] = await Promise.all([findTokens(db, keys), sessions.live(keys)]);
        const good = tokens.filter(({ state }) => state === 'good');
        return new Set([...good, ...live].map(({ key }) => key));
      });
      app.addHook('onClose', async () => open[Symbol.dispose]());
      await app.register(cookie);
      const link = oidc && addOidcRoutes(app, { oidc, sessions, db, refusals, now });
      addSignInRoutes(app, { sessions, db, check, isOpsToken, refusals, oidc: link });
      return {
        page: LOGIN,
        async byToken(token, request, reply) {
          const found = await check(token, 'token', request.ip);
          if (found === undefined) return undefined;
          const { key, id: tokenId, name, role } = found;
          open.add(key, reply.raw);
          return { name, role, how: 'token', tokenId, bySession: false };
        },
        async bySession(request, reply) {
          const session = await sessions.find(request);
          if (session === undefined) return undefined;
          const { key, name, role, tokenId } = session;
          open.add(key, reply.raw);
          const way = tokenId === null ? ({ how: 'oidc' } as const) : ({ how: 'console', tokenId } as const);
          return { name, role, ...way, bySession: true };
        },
      };
    },
    addApi(api) {
      api.get('/operators', { config: { access: 'admin' } }, async () => ({ rows: await listOperators(db) }));
    },
    async advice() {
      if (oidc !== undefined) return undefined;
      const operators = await listOperators(db);
      if (operators.some(({ disabledAt, tokens }) => disabledAt === null && tokens > 0)) return undefined;
      return 'no operator can sign in yet; create one: fleetbook operator create <name> --role admin, or issue a token to one that exists: fleetbook operator token create <name>';
    },
  };
}

const CHECK_EVERY_MS = 400;

function openResponses(live: (keys: readonly string[]) => Promise<ReadonlySet<string>>) {
  const open = new Map<ServerResponse, string>();
  let isChecking = false;
  const check = async () => {
    if (isChecking || open.size === 0) return;
    isChecking = true;
    const responses = [...open];
    // While PostgreSQL does not answer, no session can end, and new requests are refused.
    const good = await live([...new Set(open.values())]).catch(() => undefined);
    for (const [response, key] of good ? responses : []) if (!good?.has(key)) response.destroy();
    isChecking = false;
  };
  const timer = setInterval(() => void check(), CHECK_EVERY_MS).unref();
  return {
    add(key: string, response: ServerResponse) {
      open.set(response, key);
      const remove = () => open.delete(response);
      response.once('finish', remove).once('close', remove);
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
