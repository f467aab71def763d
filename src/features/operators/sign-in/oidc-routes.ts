import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Database } from '../../../db/connection/connect.ts';
import { isLostConnection } from '../../../db/connection/errors.ts';
import type { Refusals } from '../../../ops/refusals.ts';
import { roleByClaims } from '../claims.ts';
import { type OidcSignIn, signInByOidc } from '../db/oidc.ts';
import type { OidcSettings } from '../settings.ts';
import { openOidc, Refused } from './oidc-client.ts';
import { type LoginPage, loginPage, onwardPage, ownPath } from './pages.ts';
import { cookieName, cookieOptions, type Sessions } from './sessions.ts';

const START = '/login/oidc';
const CALLBACK = '/login/oidc/callback';
const COOKIE = 'fleetbook-oidc';
const FLOW_S = 600;
/** Most simultaneous requests of sign-ins to the issuer. */
const AT_ONCE = 8;

export interface OidcRoutes {
  readonly oidc: OidcSettings;
  readonly sessions: Sessions;
  readonly db: Database;
  readonly refusals: Refusals;
  readonly now: () => number;
}

/** The issuer checks the verifier; state and nonce must match its answer: no signature is needed. `since` in seconds. */
const FLOW_COOKIE = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  next: z.string(),
  since: z.number(),
});
type FlowCookie = z.infer<typeof FLOW_COOKIE>;

export function addOidcRoutes(
  app: FastifyInstance,
  { oidc, sessions, db, refusals, now }: OidcRoutes,
): NonNullable<LoginPage['oidc']> {
  const issuer = openOidc(oidc, `${oidc.origin}${CALLBACK}`, now);
  const link = { start: `${oidc.origin}${START}`, issuer: new URL(oidc.issuer).host };
  const config = { access: 'public' } as const;
  const seconds = () => Math.floor(now() / 1000);
  let running = 0;

  const orProblem = async (
    { ip }: FastifyRequest,
    reply: FastifyReply,
    next: string,
    work: () => Promise<FastifyReply>,
  ): Promise<FastifyReply> => {
    try {
      const wait = refusals.wait(ip);
      if (wait) throw new Refused(429, wait.problem);
      if (running >= AT_ONCE) throw new Refused(503, 'Too many sign-ins at the same time; try again.');
      running += 1;
      return await work().finally(() => {
        running -= 1;
      });
    } catch (error) {
      const { status, code, account, message } = problemOf(error);
      if (code !== undefined)
        await refusals.add({ how: 'oidc', address: ip, account, details: { problem: code } });
      const wait = status === 429 ? refusals.wait(ip) : undefined;
      if (wait) reply.header('retry-after', String(wait.seconds));
      reply.code(status).type('text/html; charset=utf-8');
      return reply.send(loginPage({ next, problem: message, oidc: link }));
    }
  };

  app.get<{ Querystring: { next?: unknown } }>(START, { config }, (request, reply) => {
    const next = ownPath(typeof request.query.next === 'string' ? request.query.next : undefined);
    return orProblem(request, reply, next, async () => {
      const { url, flow } = await issuer.begin();
      const cookie: FlowCookie = { ...flow, next, since: seconds() };
      const text = Buffer.from(JSON.stringify(cookie)).toString('base64url');
      // After the issuer's redirect, the browser would not send a strict cookie.
      const options = { ...cookieOptions(request, 'lax'), maxAge: FLOW_S };
      return reply.setCookie(cookieName(request, COOKIE), text, options).redirect(url.href, 303);
    });
  });

  app.get(CALLBACK, { config }, (request, reply) => {
    const flow = readFlow(request);
    reply.clearCookie(cookieName(request, COOKIE), cookieOptions(request, 'lax'));
    return orProblem(request, reply, ownPath(flow?.next), async () => {
      if (flow === undefined || seconds() - flow.since >= FLOW_S)
        throw new Refused(
          401,
          'This sign-in began in another browser, or more than ten minutes ago; sign in again.',
        );
      const [, search = ''] = /^[^?]*(\?.*)?$/.exec(request.url) ?? [];
      const { subject, address, claims } = await issuer.finish(search, flow);
      const person = { issuer: oidc.issuer, subject, address, role: roleByClaims(claims, oidc) };
      const found = await signInByOidc(db, person, request.ip);
      if (found.outcome !== 'account') throw refusalOf(found, address);
      await sessions.begin(request, reply, found.id, null);
      return reply.type('text/html; charset=utf-8').send(onwardPage(flow.next));
    });
  });
  return link;
}

function problemOf(error: unknown): Refused {
  if (error instanceof Refused) return error;
  if (isLostConnection(error)) return new Refused(503, 'PostgreSQL does not answer; try again.');
  throw error;
}

function refusalOf({ outcome, account }: Exclude<OidcSignIn, { outcome: 'account' }>, name = 'you'): Refused {
  const text = {
    'no-role': `The issuer has authenticated ${name}, but none of your groups gives a role here. Ask an admin of Fleetbook for one (OPS_OIDC_ROLES).`,
    taken: `The name ${account} belongs to another account. An admin can hand it over: fleetbook operator use-oidc ${account} (and operator enable, if it is disabled)`,
    disabled: `The account ${account} is disabled.`,
  };
  const code = { 'no-role': 'no role', taken: 'name taken', disabled: 'disabled' };
  return new Refused(403, text[outcome], code[outcome], account);
}

function readFlow(request: FastifyRequest): FlowCookie | undefined {
  const text = Buffer.from(request.cookies[cookieName(request, COOKIE)] ?? '', 'base64url').toString();
  try {
    return FLOW_COOKIE.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
