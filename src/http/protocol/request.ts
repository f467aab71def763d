import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import proxyAddr from '@fastify/proxy-addr';

/** Needs no escaping in a header, in JSON or in a URI reference. */
const WELL_FORMED = /^[A-Za-z0-9._-]{1,128}$/;

/** Returns the caller's `x-request-id` if it is well formed, otherwise a new id. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const own = request.headers['x-request-id'];
  return typeof own === 'string' && WELL_FORMED.test(own) ? own : newRequestId();
}

/** 96 random bits, different in each process. */
const PROCESS = randomBytes(12).toString('base64url');
let issued = 0;

/** Returns a new id: a counter after PROCESS. It is not a secret. */
export function newRequestId(): string {
  issued += 1;
  return `${PROCESS}.${issued}`;
}

export type AddressOf = (request: IncomingMessage) => string;

/** @param trustProxy addresses and CIDR blocks of proxies whose `X-Forwarded-For` is trusted */
export function clientAddress(trustProxy: readonly string[]): AddressOf {
  if (trustProxy.length === 0) return ({ socket }) => socket.remoteAddress ?? '';
  const isTrusted = proxyAddr.compile([...trustProxy]);
  return (request) => proxyAddr(request, isTrusted);
}

export function isProxyOf(trustProxy: readonly string[]): (address: string) => boolean {
  if (trustProxy.length === 0) return () => false;
  const isTrusted = proxyAddr.compile([...trustProxy]);
  return (address) => address !== '' && isTrusted(address, 0);
}

export { addressKey } from '../../domain/servers/client-address.ts';

/** HTTP/1.1 requires exactly one Host header field. */
export function hasBadHost({ headers, httpVersionMajor, httpVersionMinor }: IncomingMessage): boolean {
  const { host } = headers;
  if (host === undefined) return httpVersionMajor === 1 && httpVersionMinor === 1;
  return host.includes(',');
}

/**
 * Replaces percent-encoded bytes that are not UTF-8 by U+FFFD. The router accepts the result, and no slug contains U+FFFD, so
 * the answer is the usual 404. Undefined if the percent-encoding itself is broken.
 */
export function repairedTarget(target: string): string | undefined {
  const end = target.search(/[?#]/);
  const path = end === -1 ? target : target.slice(0, end);
  if (/%(?![0-9a-f]{2})/i.test(path)) return undefined;
  const repaired = path.replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) => {
    try {
      decodeURIComponent(run);
      return run;
    } catch {
      return encodeURIComponent(Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'));
    }
  });
  return repaired === path ? undefined : repaired + target.slice(path.length);
}
