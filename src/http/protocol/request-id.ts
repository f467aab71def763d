import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

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
