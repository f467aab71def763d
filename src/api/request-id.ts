import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Safe in a header, in JSON and as a URI reference without any escaping. */
const WELL_FORMED = /^[A-Za-z0-9._-]{1,128}$/;

/** The caller's `x-request-id` when it is well formed, else a new one. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && WELL_FORMED.test(given) ? given : newRequestId();
}

/** For what is answered before there is a request. */
export function newRequestId(): string {
  return randomUUID();
}
