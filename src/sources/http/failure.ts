import { SourceError, type SourceFailureKind } from '../source.ts';

const LONGEST_WAIT_MS = 24 * 60 * 60 * 1000;

type ConnectionFailure = readonly [codes: RegExp, kind: SourceFailureKind, problem: string, remedy: string];

/** By code of the system, OpenSSL or Node. Another code is `retry`; `misconfigured` is for what an operator has to solve. */
const CONNECTION_FAILURES: readonly ConnectionFailure[] = [
  [
    /^(ENOTFOUND|EAI_\w+)$/,
    'retry',
    'the name{hostname} does not resolve',
    "network or DNS is down, or the source's URL is wrong",
  ],
  [
    /^ECONNREFUSED$/,
    'retry',
    'nothing listens at {address}',
    "it is down, or the source's URL names the wrong host or port",
  ],
  [
    /^(EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN|EADDRNOTAVAIL|ETIMEDOUT)$/,
    'retry',
    'no network route leads to {address}',
    'the network is down, or only a proxy leads there',
  ],
  [
    /^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/,
    'retry',
    'its certificate is not valid at this time',
    "its operator has to renew it, or this machine's clock is wrong",
  ],
  [
    /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+)$/,
    'misconfigured',
    'no trusted authority has signed its certificate',
    "name the file of its certificate authority in NODE_EXTRA_CA_CERTS, or check the source's URL",
  ],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    'misconfigured',
    'its certificate belongs to another host',
    "check the source's URL",
  ],
  [/^CERT_\w+$/, 'misconfigured', 'its certificate cannot be used', "check the source's URL"],
  [
    /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)$/,
    'misconfigured',
    'it does not speak TLS at this port',
    "the source's URL may have to start with http:",
  ],
  [/^ERR_PROXY_TUNNEL$/, 'retry', 'the proxy does not connect to it', 'see HTTPS_PROXY and NO_PROXY'],
  [
    /^ERR_PROXY_INVALID_CONFIG$/,
    'misconfigured',
    'the setting of the proxy is wrong',
    'HTTP_PROXY and HTTPS_PROXY must be http: or https: URLs',
  ],
];

/** `where` is the address without its query. */
export function failureOfStatus(
  status: number,
  headers: Headers,
  where: string,
  now: Date,
): SourceError | undefined {
  const failure = (kind: SourceFailureKind, problem: string, options = {}) =>
    new SourceError(kind, `${where} answers ${status}${problem}`, { ...options, status });
  if (status === 200) return undefined;
  if (status === 401 || status === 403)
    return failure('misconfigured', ": the token is invalid or lacks rights; check the source's token");
  if (status === 407)
    return failure(
      'misconfigured',
      ': the proxy requires credentials; give them in HTTP_PROXY and HTTPS_PROXY',
    );
  if (status === 404 || status === 410)
    return failure('gone', ": the address does not exist any more; check the source's URL");
  if (status === 429 || status === 408 || status === 425 || status >= 500) {
    const retryAfterMs = retryAfter(headers.get('retry-after'), now);
    return failure('retry', '', { retryAfterMs, limitsAll: status === 429 && retryAfterMs !== undefined });
  }
  return failure('invalid', ', which this adapter does not expect');
}

/** Returns the milliseconds of a `Retry-After`, at most a day; undefined if it is absent or invalid. */
function retryAfter(value: string | null, now: Date): number | undefined {
  if (value === null) return undefined;
  const text = value.trim();
  if (/^\d{1,15}$/.test(text)) return Math.min(Number(text) * 1000, LONGEST_WAIT_MS);
  // RFC 9110: an HTTP date in any of its three forms. Date.parse alone would also accept "1.5".
  const until = /^[A-Z][a-z]{2,8},? .*\d{2}:\d{2}:\d{2}/.test(text) ? Date.parse(asUtc(text)) : Number.NaN;
  if (Number.isNaN(until)) return undefined;
  return Math.min(Math.max(until - now.getTime(), 0), LONGEST_WAIT_MS);
}

/** Returns the failure of a request without a whole answer. `advice` replaces the remedy, e.g. if no URL is configured. */
export function failureOfConnection(error: unknown, where: string, advice?: string): SourceError {
  const { code, hostname, address = 'its address' } = failedConnection(error);
  const known = CONNECTION_FAILURES.find(([codes]) => code !== undefined && codes.test(code));
  if (known === undefined) {
    const reason = code ?? 'the connection was lost';
    return new SourceError('retry', `${where} gave no whole answer (${reason})`, { cause: error });
  }
  const [, kind, template, remedy] = known;
  const problem = template
    .replace('{hostname}', hostname === undefined ? '' : ` ${hostname}`)
    .replace('{address}', address);
  const message = `${where} cannot be reached: ${problem} (${code}); ${advice ?? remedy}`;
  return new SourceError(kind, message, { cause: error });
}

function asUtc(text: string): string {
  return text.endsWith('GMT') ? text : `${text} GMT`;
}

/** Returns the fields of the system's errors along the chain of causes. */
function failedConnection(error: unknown) {
  let found: { code?: string; hostname?: string; address?: string } = {};
  for (let at = error; at instanceof Error; at = at.cause ?? firstOf(at)) {
    if ('code' in at && typeof at.code === 'string') found = { ...found, code: at.code };
    if ('hostname' in at && typeof at.hostname === 'string') found = { ...found, hostname: at.hostname };
    if ('address' in at && typeof at.address === 'string') found = { ...found, address: addressOf(at) };
  }
  return found;
}

/** A name with several addresses fails with one error for each; the first one represents all. */
function firstOf(error: Error): unknown {
  return error instanceof AggregateError ? error.errors[0] : undefined;
}

function addressOf({ address, port }: { address?: unknown; port?: unknown }): string {
  const host = String(address).includes(':') ? `[${address}]` : String(address);
  return port === undefined ? host : `${host}:${port}`;
}
