/** Signing in by OpenID Connect: the way to the issuer, and the way back. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Database } from '../../db/connect.ts';
import { isLostConnection } from '../../db/errors.ts';
import { type OidcSignIn, signInByOidc } from '../../db/oidc-operators.ts';
import { type OidcSettings, roleByClaims } from '../../domain/oidc.ts';
import { type AddressFailures, tooManyFailures } from './address-failures.ts';
import { IssuerAway, openOidc, type Person, SignInRefused } from './oidc-client.ts';
import { ownPath } from './own-path.ts';
import { type LoginPage, loginPage, onwardPage } from './pages.ts';
import type { RecordRefusal } from './refusals.ts';
import { cookieName, cookieOptions, type Sessions } from './sessions.ts';

const START = '/login/oidc';
const CALLBACK = '/login/oidc/callback';
const COOKIE = 'fleetbook-oidc';
/** A person may have to type a password and a code at the issuer. */
const FLOW_S = 600;
/** Requests to the issuer that this process makes at the same time. */
const AT_ONCE = 8;

export interface OidcRoutes {
  readonly oidc: OidcSettings;
  readonly sessions: Sessions;
  readonly db: Database;
  readonly failures: AddressFailures;
  readonly record: RecordRefusal;
  /** Milliseconds. */
  readonly now: () => number;
}

/**
 * A sign-in under way. The browser keeps it, so that any process can end it. It needs no signature: the issuer checks the
 * verifier, and state and nonce must match what the issuer sends back.
 */
const KEPT_FLOW = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  next: z.string(),
  /** Seconds. */
  since: z.number(),
});
type KeptFlow = z.infer<typeof KEPT_FLOW>;

interface Problem {
  readonly status: 401 | 403 | 429 | 503;
  readonly text: string;
  /** For the audit log; undefined for a problem that says nothing of a person. */
  readonly code?: string;
  readonly account?: string | undefined;
}

const BUSY: Problem = { status: 503, text: 'Too many sign-ins at this moment; try again.' };
const AWAY: Problem = { status: 503, text: 'The issuer does not answer; try again in a moment.' };
const NO_DATABASE: Problem = { status: 503, text: 'PostgreSQL does not answer; try again.' };
const NOT_BEGUN: Problem = {
  status: 401,
  text: 'This sign-in was not begun in this browser, or more than ten minutes ago; begin again.',
};

/** @returns what the login page links to */
export function addOidcRoutes(
  app: FastifyInstance,
  { oidc, sessions, db, failures, record, now }: OidcRoutes,
): NonNullable<LoginPage['oidc']> {
  const issuer = openOidc(oidc, `${oidc.origin}${CALLBACK}`, now);
  const link = { start: `${oidc.origin}${START}`, issuer: new URL(oidc.issuer).host };
  const config = { access: 'public' } as const;
  const seconds = () => Math.floor(now() / 1000);
  let running = 0;

  /** @returns the problem; undefined once the work has answered */
  const limited = async (
    { ip }: FastifyRequest,
    reply: FastifyReply,
    work: () => Promise<Problem | undefined>,
  ): Promise<Problem | undefined> => {
    const wait = failures.secondsToWait(ip);
    if (wait !== undefined) {
      reply.header('retry-after', String(wait));
      return { status: 429, text: tooManyFailures(wait) };
    }
    if (running >= AT_ONCE) return BUSY;
    running += 1;
    try {
      return await work();
    } catch (error) {
      if (error instanceof IssuerAway) return AWAY;
      if (isLostConnection(error)) return NO_DATABASE;
      throw error;
    } finally {
      running -= 1;
    }
  };
  const showProblem = (reply: FastifyReply, { status, text }: Problem, next: string) =>
    reply
      .code(status)
      .type('text/html; charset=utf-8')
      .send(loginPage({ next, problem: text, oidc: link }));

  app.get<{ Querystring: { next?: unknown } }>(START, { config }, async (request, reply) => {
    const { next: asked } = request.query;
    const next = ownPath(typeof asked === 'string' ? asked : undefined);
    const problem = await limited(request, reply, async () => {
      const { url, flow } = await issuer.begin();
      const kept: KeptFlow = { ...flow, next, since: seconds() };
      // The issuer sends the browser back, and a strict cookie would not come along.
      reply.setCookie(cookieName(request, COOKIE), Buffer.from(JSON.stringify(kept)).toString('base64url'), {
        ...cookieOptions(request, 'lax'),
        maxAge: FLOW_S,
      });
      reply.redirect(url.href, 303);
      return undefined;
    });
    return problem ? showProblem(reply, problem, next) : reply;
  });

  app.get(CALLBACK, { config }, async (request, reply) => {
    const flow = keptFlow(request);
    const next = ownPath(flow?.next);
    reply.clearCookie(cookieName(request, COOKIE), cookieOptions(request, 'lax'));
    const problem = await limited(request, reply, () => enter(request, reply, flow));
    if (problem?.code !== undefined) {
      const { code, account } = problem;
      const { locked } = failures.failed(request.ip) ?? {};
      const details = { problem: code, ...(locked && { locked }) };
      await record({ account, how: 'oidc', address: request.ip, details });
    }
    return problem ? showProblem(reply, problem, next) : reply;
  });

  const enter = async (
    request: FastifyRequest,
    reply: FastifyReply,
    flow: KeptFlow | undefined,
  ): Promise<Problem | undefined> => {
    if (flow === undefined || seconds() - flow.since >= FLOW_S) return NOT_BEGUN;
    const [, search = ''] = /^[^?]*(\?.*)?$/.exec(request.url) ?? [];
    let person: Person;
    try {
      person = await issuer.finish(search, flow);
    } catch (error) {
      if (!(error instanceof SignInRefused)) throw error;
      const { message: code } = error;
      return { status: 401, text: `The sign-in was refused: ${code}. Begin again.`, code };
    }
    const { subject, address, claims } = person;
    const role = roleByClaims(claims, oidc);
    const found = await signInByOidc(db, { issuer: oidc.issuer, subject, address, role }, request.ip);
    if (found.outcome !== 'account') return refusalOf(found, address);
    await sessions.begin(request, reply, { operatorId: found.id, tokenId: null });
    reply.type('text/html; charset=utf-8').send(onwardPage(flow.next));
    return undefined;
  };
  return link;
}

function refusalOf(found: Exclude<OidcSignIn, { outcome: 'account' }>, name = 'you'): Problem {
  const { account } = found;
  switch (found.outcome) {
    case 'no-role':
      return {
        status: 403,
        text: `The issuer knows ${name}, but none of your groups gives a role here. Ask whoever runs Fleetbook for one (OPS_OIDC_ROLES).`,
        code: 'no role',
        account,
      };
    case 'taken':
      return {
        status: 403,
        text: `The name ${account} belongs to another account. An admin can hand it over: fleetbook operator use-oidc ${account} (and operator enable, if it is disabled)`,
        code: 'name taken',
        account,
      };
    case 'disabled':
      return { status: 403, text: `The account ${account} is disabled.`, code: 'disabled', account };
  }
}

function keptFlow(request: FastifyRequest): KeptFlow | undefined {
  const text = Buffer.from(request.cookies[cookieName(request, COOKIE)] ?? '', 'base64url').toString();
  try {
    return KEPT_FLOW.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
