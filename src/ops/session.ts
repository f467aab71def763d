/**
 * Sessions of operators: a signed cookie says who, of which epoch, since when and when last seen. Role and epoch are
 * asked of the database at every request, so that a session ends as soon as its account is disabled or has another
 * password, in every process.
 */
import { createHmac, scryptSync, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Sql } from '../db/connect.ts';
import { type Account, accountById } from '../db/reads/operators.ts';
import { cookieName, cookieOptions, setSigned, signedText } from './cookies.ts';
import type { SignedIn } from './roles.ts';

export interface SessionLimits {
  /** Seconds without a request after which a session is over. */
  readonly idle: number;
  /** Seconds after which it is over anyway. */
  readonly lifetime: number;
}

export interface SessionDependencies extends SessionLimits {
  readonly sql: Sql;
  readonly keys: SessionKeys;
  /** Milliseconds. */
  readonly now: () => number;
}

export interface SessionKeys {
  /** Of the cookie's signature, which the plugin makes. */
  readonly secret: string;
  /** Part of the sessions that OPS_TOKEN opened: they end when it is another one. Undefined where there is none. */
  readonly tokenMark: string | undefined;
}

/**
 * Derived slowly: whoever has a cookie could otherwise try out what a short OPS_TOKEN may be.
 * @returns undefined where there is nothing to derive from
 */
export function sessionKeys(key: string | undefined, token: string | undefined): SessionKeys | undefined {
  const from = key ?? token;
  if (from === undefined) return undefined;
  const secret = scryptSync(from, 'fleetbook operators’ sessions', 32, {
    N: 2 ** 15,
    r: 8,
    p: 1,
    maxmem: 2 ** 26,
  });
  const tokenMark = token === undefined ? undefined : mac(secret.toString('hex'), `token ${token}`);
  return { secret: secret.toString('hex'), tokenMark };
}

/** Who a session is of, and the times of it in seconds. */
interface SessionState {
  /** The account's id; 0 for OPS_TOKEN. */
  readonly account: number;
  /** The account's epoch, or the mark of OPS_TOKEN. */
  readonly epoch: string;
  readonly since: number;
  readonly seen: number;
}

const COOKIE = 'fleetbook-ops';

/** A cookie is given anew when it is older than this. */
const SEEN_EVERY_S = 60;

export class Sessions {
  readonly #deps: SessionDependencies;

  constructor(deps: SessionDependencies) {
    this.#deps = deps;
  }

  /** Begins a session in place of whatever there was. */
  begin(
    request: FastifyRequest,
    reply: FastifyReply,
    account: Pick<Account, 'id' | 'sessionEpoch'> | undefined,
  ): void {
    const since = this.#seconds();
    const epoch = account ? String(account.sessionEpoch) : (this.#deps.keys.tokenMark ?? '');
    this.#write(request, reply, { account: account?.id ?? 0, epoch, since, seen: since });
  }

  /** Who has the request's session; undefined without one that is good. Keeps it from being idle. */
  async find(request: FastifyRequest, reply: FastifyReply): Promise<SignedIn | undefined> {
    const state = this.#read(request);
    if (state === undefined) return undefined;
    const signedIn = await this.#owner(state);
    if (signedIn && this.#seconds() - state.seen >= SEEN_EVERY_S)
      this.#write(request, reply, { ...state, seen: this.#seconds() });
    return signedIn;
  }

  /** Takes the cookie back. */
  end(request: FastifyRequest, reply: FastifyReply): void {
    reply.clearCookie(cookieName(request, COOKIE), cookieOptions(request));
  }

  /** What a program sends as `x-csrf-token` with its changing requests; undefined without a session. */
  csrfToken(request: FastifyRequest): string | undefined {
    const state = this.#read(request);
    if (state === undefined) return undefined;
    return mac(this.#deps.keys.secret, `csrf ${state.account} ${state.epoch} ${state.since}`);
  }

  hasCsrfToken(request: FastifyRequest): boolean {
    const expected = this.csrfToken(request);
    const given = request.headers['x-csrf-token'];
    if (expected === undefined || typeof given !== 'string' || given.length !== expected.length) return false;
    return timingSafeEqual(Buffer.from(given), Buffer.from(expected));
  }

  async #owner({ account: id, epoch }: SessionState): Promise<SignedIn | undefined> {
    if (id === 0) {
      const { tokenMark } = this.#deps.keys;
      if (tokenMark === undefined || epoch !== tokenMark) return undefined;
      return { name: 'OPS_TOKEN', role: 'admin', how: 'token', bySession: true };
    }
    const account = await accountById(this.#deps.sql, id);
    if (account === undefined || account.isDisabled || String(account.sessionEpoch) !== epoch)
      return undefined;
    const how = account.passwordHash === null ? 'oidc' : 'console';
    return { name: account.name, role: account.role, how, bySession: true };
  }

  #read(request: FastifyRequest): SessionState | undefined {
    const [, account, epoch = '', since, seen] = STATE.exec(signedText(request, COOKIE) ?? '') ?? [];
    if (account === undefined) return undefined;
    const state = { account: Number(account), epoch, since: Number(since), seen: Number(seen) };
    const now = this.#seconds();
    const { idle, lifetime } = this.#deps;
    return now - state.since < lifetime && now - state.seen < idle ? state : undefined;
  }

  #write(request: FastifyRequest, reply: FastifyReply, { account, epoch, since, seen }: SessionState): void {
    setSigned(request, reply, COOKIE, `${account}.${epoch}.${since}.${seen}`);
  }

  #seconds(): number {
    return Math.floor(this.#deps.now() / 1000);
  }
}

const STATE = /^(\d{1,10})\.([A-Za-z0-9_-]{1,64})\.(\d{1,12})\.(\d{1,12})$/;

const mac = (secret: string, text: string) => createHmac('sha256', secret).update(text).digest('base64url');
