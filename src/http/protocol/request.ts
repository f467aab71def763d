/** What is read of a request before and beside its route: id, address, host and target. */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import proxyAddr from '@fastify/proxy-addr';

/** Safe in a header, in JSON and as a URI reference without any escaping. */
const WELL_FORMED = /^[A-Za-z0-9._-]{1,128}$/;

/** The caller's `x-request-id` when it is well formed, else a new one. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const own = request.headers['x-request-id'];
  return typeof own === 'string' && WELL_FORMED.test(own) ? own : newRequestId();
}

/** 96 random bits: no two processes have the same. */
const PROCESS = randomBytes(12).toString('base64url');
let given = 0;

/** For what is answered before there is a request. It is no secret; drawing it anew each time would only cost time. */
export function newRequestId(): string {
  given += 1;
  return `${PROCESS}.${given}`;
}

/** The address of the client. */
export type AddressOf = (request: IncomingMessage) => string;

/** @param trustProxy addresses and CIDR blocks of proxies whose `X-Forwarded-For` is believed */
export function clientAddress(trustProxy: readonly string[]): AddressOf {
  if (trustProxy.length === 0) return ({ socket }) => socket.remoteAddress ?? '';
  const isTrusted = proxyAddr.compile([...trustProxy]);
  return (request) => proxyAddr(request, isTrusted);
}

/** Returns the test for addresses of trusted proxies. */
export function isProxyOf(trustProxy: readonly string[]): (address: string) => boolean {
  if (trustProxy.length === 0) return () => false;
  const isTrusted = proxyAddr.compile([...trustProxy]);
  return (address) => address !== '' && isTrusted(address, 0);
}

export { addressKey } from '../../lib/client-address.ts';

/** HTTP/1.1 asks for exactly one Host header field. */
export function hasBadHost({ headers, httpVersionMajor, httpVersionMinor }: IncomingMessage): boolean {
  const { host } = headers;
  if (host === undefined) return httpVersionMajor === 1 && httpVersionMinor === 1;
  return host.includes(',');
}

/**
 * The same target with every byte sequence that is percent-encoded properly but is not UTF-8 replaced by U+FFFD, so
 * that it can be routed like any other: no slug contains that, and the answer is the 404 of every unknown slug.
 * Undefined where nothing can be mended: then the percent-encoding itself is broken.
 */
export function mendedTarget(target: string): string | undefined {
  const end = target.search(/[?#]/);
  const path = end === -1 ? target : target.slice(0, end);
  if (/%(?![0-9a-f]{2})/i.test(path)) return undefined;
  const mended = path.replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) => {
    try {
      decodeURIComponent(run);
      return run;
    } catch {
      return encodeURIComponent(Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'));
    }
  });
  return mended === path ? undefined : mended + target.slice(path.length);
}
