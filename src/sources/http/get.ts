import type { IncomingMessage } from 'node:http';
import { type RequestOptions, request as secure } from 'node:https';
import { VERSION } from '../../config/package.ts';
import { traced } from '../../domain/tracer.ts';
import { misconfigured, type SourceError } from '../source.ts';
import { checkedLookup, isForbidden } from './forbidden-address.ts';

/** Not by `import`, which would load all of undici: a tenth of the start of a command. */
const { request: plain } = process.getBuiltinModule('node:http');

type GetOptions = RequestOptions & { readonly signal: AbortSignal };

/**
 * GETs an address. Returns the head of the response; its body is unread and encoded. A body with a length or in chunks
 * fails if it ends early; `fetch` accepts half of a compressed body as a whole one. Node's settings configure proxies and
 * certificate authorities. @throws SourceError `misconfigured` for an address that no source may read; the system's error
 */
export function get(url: URL, options: GetOptions): Promise<IncomingMessage> {
  const attributes = { 'http.request.method': 'GET', 'server.address': url.hostname };
  return traced('GET', attributes, async (note) => {
    const response = await headOf(url, options);
    note({ 'http.response.status_code': response.statusCode ?? 0 });
    return response;
  });
}

async function headOf(url: URL, options: GetOptions): Promise<IncomingMessage> {
  if (isForbidden(url.hostname)) throw forbidden(url.hostname);
  for (;;) {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const headers = { 'user-agent': `fleetbook/${VERSION}`, ...options.headers };
    const send = url.protocol === 'http:' ? plain : secure;
    // Ignores credentials in an address that an upstream names.
    const sent = send(url, { ...options, headers, auth: undefined, lookup });
    sent.once('socket', (socket) => socket.setKeepAlive(true, 30_000));
    // A connection that is lost during the response emits another error.
    sent.once('response', resolve).on('error', reject).end();
    try {
      return await promise;
    } catch (error) {
      // The server closed a kept-alive connection at the moment of its reuse.
      const wasClosed = error instanceof Error && 'code' in error && error.code === 'ECONNRESET';
      if (!sent.reusedSocket || !wasClosed || options.signal.aborted) throw error;
    }
  }
}

function forbidden(hostname: string, address?: string): SourceError {
  const what = address === undefined ? 'is' : `resolves to ${address},`;
  return misconfigured(
    `${hostname} ${what} a link-local address or a metadata service, which no source may read; ` +
      "check the source's URL and where it redirects",
  );
}

const lookup = checkedLookup(forbidden);
