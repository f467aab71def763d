/** Sends one signed message to one receiver, as standardwebhooks.com describes. */
import { createHmac, randomBytes } from 'node:crypto';
import { request as secure } from 'node:https';
import { checkedLookup, isForbidden } from '../../sources/http/forbidden-address.ts';

/** Not by `import`, which would load all of undici: a tenth of the start of a command. */
const { request: plain } = process.getBuiltinModule('node:http');

export interface Receiver {
  /** May contain a secret, so no log and no message shows it. */
  readonly url: string;
  /** Undefined: messages have no signature. */
  readonly secret: Buffer | undefined;
}

export interface OutgoingMessage {
  readonly messageId: string;
  readonly body: string;
}

const TIMEOUT_MS = 10_000;

/** Returns the header fields of a signature. @param at seconds since the epoch */
function signedHeaders(
  { messageId, body }: OutgoingMessage,
  at: number,
  secret: Buffer,
): Record<string, string> {
  const signature = createHmac('sha256', secret).update(`${messageId}.${at}.${body}`).digest('base64');
  return { 'webhook-id': messageId, 'webhook-timestamp': String(at), 'webhook-signature': `v1,${signature}` };
}

/**
 * Sends a message, and follows no redirect.
 * @param now milliseconds since the epoch
 * @returns the error unless the status is 2xx
 */
export async function send(
  receiver: Receiver,
  message: OutgoingMessage,
  now: number,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const headers = receiver.secret
      ? signedHeaders(message, Math.floor(now / 1000), receiver.secret)
      : undefined;
    const status = await post(
      new URL(receiver.url),
      message.body,
      headers,
      signal ? AbortSignal.any([signal, timeout]) : timeout,
    );
    return status >= 200 && status < 300 ? undefined : `it answered ${status}`;
  } catch (error) {
    return timeout.aborted ? `no answer within ${TIMEOUT_MS / 1000} s` : errorText(error);
  }
}

class ForbiddenReceiver extends Error {
  override readonly name = 'ForbiddenReceiver';
}

const FORBIDDEN = 'it has a link-local address or the address of a metadata service, so nothing is sent';
const lookup = checkedLookup(() => new ForbiddenReceiver(FORBIDDEN));

/** @returns the status of the answer */
async function post(
  url: URL,
  body: string,
  headers: Record<string, string> | undefined,
  signal: AbortSignal,
): Promise<number> {
  if (isForbidden(url.hostname)) throw new ForbiddenReceiver(FORBIDDEN);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const sent = (url.protocol === 'http:' ? plain : secure)(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'fleetbook',
      ...headers,
    },
    lookup,
    signal,
  });
  sent.once('response', (response) => {
    resolve(response.statusCode ?? 0);
    response.destroy();
  });
  sent.on('error', reject).end(body);
  return promise;
}

/** Returns the error's code without its message, which may contain the address and its secret. */
function errorText(error: unknown): string {
  if (error instanceof ForbiddenReceiver) return error.message;
  const { code, name } = error as { code?: unknown; name?: unknown };
  return `it could not be reached (${String(code ?? name ?? 'error')})`;
}

const LONGEST_URL = 2000;

/**
 * Reads the address of a receiver that an organization names. Without TLS an address could reach a program of the worker's
 * machine or network that never expects requests of others.
 * @returns the address, or what is wrong with the text
 */
export function readReceiverAddress(text: string): URL | { readonly problem: string } {
  const url = text.length <= LONGEST_URL && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return { problem: `must be a URL of at most ${LONGEST_URL} characters` };
  if (url.protocol !== 'https:')
    return {
      problem: 'must start with https://; a proxy with a certificate can be in front of the receiver',
    };
  if (url.username !== '' || url.password !== '')
    return { problem: 'must not hold a user name or password: the receiver checks the signature instead' };
  if (isForbidden(url.hostname))
    return { problem: 'must not be a link-local address or a metadata service; name another host' };
  return url;
}

/** Bytes of a signing secret, as in standardwebhooks.com. */
const SECRET_BYTES = { least: 24, most: 64, made: 32 };

export const SECRET_FORM = `whsec_ and the base64 of ${SECRET_BYTES.least} to ${SECRET_BYTES.most} bytes`;

/** Returns the bytes of a secret in the form `whsec_…`; undefined for any other text. */
export function readSecret(text: string): Buffer | undefined {
  const [, base64 = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  const bytes = Buffer.from(base64, 'base64');
  return bytes.length >= SECRET_BYTES.least && bytes.length <= SECRET_BYTES.most ? bytes : undefined;
}

export const newSecret = (): Buffer => randomBytes(SECRET_BYTES.made);
export const secretText = (secret: Buffer): string => `whsec_${secret.toString('base64')}`;
