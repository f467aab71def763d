import { type IncomingMessage, request as plain } from 'node:http';
import { type RequestOptions, request as secure } from 'node:https';
import { VERSION } from '../../config/package.ts';

/**
 * GETs an address: the answer's head, its body still unread and as it came over the wire. A body with a length or in
 * chunks fails when it ends early. Not `fetch`, which decodes bodies itself and takes half of a compressed one for a
 * whole one. Proxies and further certificate authorities are Node's own (`NODE_USE_ENV_PROXY`, `NODE_EXTRA_CA_CERTS`).
 * @throws what the system or Node's parser says of a connection that failed; an `AbortError`
 */
export async function get(
  url: URL,
  options: RequestOptions & { readonly signal: AbortSignal },
): Promise<IncomingMessage> {
  for (;;) {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const headers = { 'user-agent': `fleetbook/${VERSION}`, ...options.headers };
    const send = url.protocol === 'http:' ? plain : secure;
    // An address that an upstream names brings no credentials of its own.
    const asked = send(url, { ...options, headers, auth: undefined });
    asked.once('socket', (socket) => socket.setKeepAlive(true, 30_000));
    // Not once: a connection that is cut after its answer has begun reports that here too.
    asked.once('response', resolve).on('error', reject).end();
    try {
      return await promise;
    } catch (error) {
      // The server closed a connection that was kept from an earlier answer just when it was to be used again.
      const wasClosed = error instanceof Error && 'code' in error && error.code === 'ECONNRESET';
      if (!asked.reusedSocket || !wasClosed || options.signal.aborted) throw error;
    }
  }
}
