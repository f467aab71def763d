/** Cookies of the operators' pages. All are signed with one key: each value begins in a way that no other one does. */
import type { FastifyReply, FastifyRequest } from 'fastify';

const isSecure = ({ protocol }: FastifyRequest) => protocol === 'https';

/** One of a plain connection, and one of TLS, which no page of plain HTTP can have set. */
export const cookieName = (request: FastifyRequest, name: string): string =>
  isSecure(request) ? `__Host-${name}` : name;

/** Seen by no script, and sent by no other site; `lax` where somebody comes back from another site by a link. */
export const cookieOptions = (request: FastifyRequest, sameSite: 'strict' | 'lax' = 'strict') =>
  ({ httpOnly: true, sameSite, secure: isSecure(request), path: '/' }) as const;

/** The text of a signed cookie; undefined where there is none, or somebody else has made it. */
export function signedText(request: FastifyRequest, name: string): string | undefined {
  const cookie = request.cookies[cookieName(request, name)];
  if (cookie === undefined) return undefined;
  const { valid, value } = request.unsignCookie(cookie);
  return valid ? value : undefined;
}

export function setSigned(
  request: FastifyRequest,
  reply: FastifyReply,
  name: string,
  text: string,
  more: { readonly maxAge?: number; readonly sameSite?: 'strict' | 'lax' } = {},
): void {
  const { maxAge, sameSite } = more;
  const options = {
    ...cookieOptions(request, sameSite),
    signed: true,
    ...(maxAge !== undefined && { maxAge }),
  };
  reply.setCookie(cookieName(request, name), text, options);
}
