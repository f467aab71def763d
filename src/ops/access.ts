/** The operator of a request, and the role that its route needs. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Decider, Role, Way } from '../domain/operator.ts';
import { problemPage } from './pages.ts';

export interface SignedIn {
  readonly name: string;
  readonly role: Role;
  readonly how: Exclude<Way, 'cli'>;
  /** The operator token of the request, or of its session. */
  readonly tokenId?: number | undefined;
  /** True for a session. A browser sends its cookie with every request, so a changing request must prove its origin. */
  readonly bySession: boolean;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Undefined only on public routes. */
    signedIn: SignedIn | undefined;
  }
  interface FastifyContextConfig {
    readonly access?: 'public' | Role;
  }
}

export function neededRole({ method, routeOptions }: FastifyRequest): 'public' | Role {
  const { access } = routeOptions.config ?? {};
  return access ?? (isChanging(method) ? 'operator' : 'viewer');
}

export const isChanging = (method: string): boolean => !['GET', 'HEAD', 'OPTIONS'].includes(method);

export function operatorOf({ signedIn }: FastifyRequest): SignedIn {
  if (signedIn === undefined) throw new Error('a public route has no operator');
  return signedIn;
}

/** Returns the actor of a request for the audit log. @param reason one line @throws Error on a public route */
export function deciderOf(request: FastifyRequest, reason?: string): Decider {
  const { name: by, how, tokenId } = operatorOf(request);
  return { by, how, tokenId, address: request.ip, reason };
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'This address is not valid',
  401: 'Sign in first',
  403: 'Not allowed',
  404: 'This page does not exist',
  429: 'Too many failed sign-ins',
  503: 'Not available now',
};

/** A second request has the same answer. */
const LASTING = new Set([400, 404]);

/** Answers with an error: `{"error": "…"}` below `/api/`, a page for a browser, else plain text. */
export function refuse(
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  error: string,
): FastifyReply {
  reply.code(status);
  if (isApi(request)) return reply.send({ error });
  if (wantsPage(request))
    return reply
      .type('text/html; charset=utf-8')
      .send(problemPage(TITLES[status] ?? 'An error occurred', error, LASTING.has(status)));
  return reply.type('text/plain; charset=utf-8').send(`${error}\n`);
}

export const wantsPage = ({ headers }: FastifyRequest): boolean =>
  /\btext\/html\b/.test(headers.accept ?? '');

export const isApi = ({ url }: FastifyRequest): boolean => /^\/api(?:[/?]|$)/.test(url);
