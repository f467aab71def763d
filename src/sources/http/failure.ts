import { SourceError } from '../source.ts';

/** The longest Retry-After that is honoured. */
const LONGEST_WAIT_MS = 24 * 60 * 60 * 1000;

interface ConnectionFailure {
  readonly codes: RegExp;
  /** `misconfigured` only where an operator has to act: what is down or late recovers by itself. */
  readonly kind: 'retry' | 'misconfigured';
  /** What happened, and what to look at. */
  readonly says: (failed: FailedConnection) => readonly [problem: string, remedy: string];
}

/** By the code of the system, OpenSSL or Node. A code that is not listed is `retry`. */
const CONNECTION_FAILURES: readonly ConnectionFailure[] = [
  {
    codes: /^(ENOTFOUND|EAI_\w+)$/,
    kind: 'retry',
    says: ({ hostname }) => [
      `the name${hostname === undefined ? '' : ` ${hostname}`} does not resolve`,
      "network or DNS is down, or the source's URL is wrong",
    ],
  },
  {
    codes: /^ECONNREFUSED$/,
    kind: 'retry',
    says: ({ address = 'its address' }) => [
      `nothing listens at ${address}`,
      "it is down, or the source's URL names the wrong host or port",
    ],
  },
  {
    codes: /^(EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN|EADDRNOTAVAIL|ETIMEDOUT)$/,
    kind: 'retry',
    says: ({ address = 'its address' }) => [
      `there is no way to ${address}`,
      'the network is down, or only a proxy leads there',
    ],
  },
  {
    codes: /^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/,
    kind: 'retry',
    says: () => [
      'its certificate is not valid at this time',
      "whoever runs it has to renew it, or this machine's clock is wrong",
    ],
  },
  {
    codes: /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+)$/,
    kind: 'misconfigured',
    says: () => [
      'nobody who is trusted here has signed its certificate',
      "name the file of its certificate authority in NODE_EXTRA_CA_CERTS, or check the source's URL",
    ],
  },
  {
    codes: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    kind: 'misconfigured',
    says: () => ['its certificate is that of another host', "check the source's URL"],
  },
  {
    codes: /^CERT_\w+$/,
    kind: 'misconfigured',
    says: () => ['its certificate cannot be used', "check the source's URL"],
  },
  {
    codes: /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)$/,
    kind: 'misconfigured',
    says: () => ['it does not speak TLS at this port', "the source's URL may be one that starts with http:"],
  },
  {
    codes: /^ERR_PROXY_TUNNEL$/,
    kind: 'retry',
    says: () => ['the proxy gives no connection to it', 'see HTTPS_PROXY and NO_PROXY'],
  },
  {
    codes: /^ERR_PROXY_INVALID_CONFIG$/,
    kind: 'misconfigured',
    says: () => ['the proxy is not set rightly', 'HTTP_PROXY and HTTPS_PROXY must be http: or https: URLs'],
  },
];

/** What a status other than 200 means; undefined for 200. `where` is the address without its query. */
export function failureOfStatus(
  status: number,
  headers: Headers,
  where: string,
  now: Date,
): SourceError | undefined {
  if (status === 200) return undefined;
  const said = `${where} answers ${status}`;
  if (status === 401 || status === 403) {
    return new SourceError(
      'misconfigured',
      `${said}: it wants another token, or one with more rights; check the source's token`,
    );
  }
  if (status === 407) {
    return new SourceError(
      'misconfigured',
      `${said}: the proxy wants credentials; give them in HTTP_PROXY and HTTPS_PROXY`,
    );
  }
  if (status === 404 || status === 410) {
    return new SourceError(
      'gone',
      `${said}: there is nothing at this address any more; check the source's URL`,
    );
  }
  if (status === 429 || status === 408 || status === 425 || status >= 500) {
    const retryAfterMs = retryAfter(headers.get('retry-after'), now);
    if (retryAfterMs === undefined) return new SourceError('retry', said);
    return new SourceError('retry', said, { retryAfterMs, limitsAll: status === 429 });
  }
  return new SourceError('invalid', `${said}, which this adapter has no use for`);
}

/** Milliseconds that a `Retry-After` asks for, at most a day; undefined when it is absent or no valid one. */
function retryAfter(value: string | null, now: Date): number | undefined {
  if (value === null) return undefined;
  const text = value.trim();
  if (/^\d{1,15}$/.test(text)) return Math.min(Number(text) * 1000, LONGEST_WAIT_MS);
  // RFC 9110: an HTTP date, in any of its three forms; Date.parse alone would also take "1.5" for a date.
  const until = /^[A-Z][a-z]{2,8},? .*\d{2}:\d{2}:\d{2}/.test(text) ? Date.parse(asUtc(text)) : Number.NaN;
  if (Number.isNaN(until)) return undefined;
  return Math.min(Math.max(until - now.getTime(), 0), LONGEST_WAIT_MS);
}

/** The failure of a request that got no whole answer. `advice` replaces the remedy that speaks of the source's URL. */
export function failureOfConnection(error: unknown, where: string, advice?: string): SourceError {
  const failed = failedConnection(error);
  const { code } = failed;
  const known = CONNECTION_FAILURES.find(({ codes }) => code !== undefined && codes.test(code));
  if (known === undefined) {
    const reason = code ?? 'the connection broke off';
    return new SourceError('retry', `${where} gave no whole answer (${reason})`, { cause: error });
  }
  const [problem, remedy] = known.says(failed);
  const message = `${where} cannot be reached: ${problem} (${code}); ${advice ?? remedy}`;
  return new SourceError(known.kind, message, { cause: error });
}

function asUtc(text: string): string {
  return text.endsWith('GMT') ? text : `${text} GMT`;
}

interface FailedConnection {
  readonly code?: string;
  /** The name that was looked up: the source's, or that of a proxy. */
  readonly hostname?: string;
  /** The address that was tried, with its port. */
  readonly address?: string;
}

/** What the system says, found along the chain of causes. */
function failedConnection(error: unknown): FailedConnection {
  let found: FailedConnection = {};
  for (let at = error; at instanceof Error; at = at.cause ?? firstOf(at)) {
    if ('code' in at && typeof at.code === 'string') found = { ...found, code: at.code };
    if ('hostname' in at && typeof at.hostname === 'string') found = { ...found, hostname: at.hostname };
    if ('address' in at && typeof at.address === 'string') found = { ...found, address: addressOf(at) };
  }
  return found;
}

/** A name with several addresses fails with one error for each; the first stands for all. */
function firstOf(error: Error): unknown {
  return error instanceof AggregateError ? error.errors[0] : undefined;
}

function addressOf({ address, port }: { address?: unknown; port?: unknown }): string {
  const host = String(address).includes(':') ? `[${address}]` : String(address);
  return port === undefined ? host : `${host}:${port}`;
}
