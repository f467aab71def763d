import { SourceError } from './source.ts';

/** A source that asks to be left alone for longer than this is asked again after it all the same. */
const LONGEST_WAIT_MS = 24 * 60 * 60 * 1000;

/** Failures of a connection that no repetition mends: an operator has to look at the URL or at the certificate. */
const SETTING_CODES =
  /^(bad port|ENOTFOUND|ERR_TLS_CERT_ALTNAME_INVALID|ERR_SSL_WRONG_VERSION_NUMBER|CERT_.*|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_.*)$/;

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

/** Milliseconds that a `Retry-After` asks for, at most a day; undefined when it is absent or says nothing. */
function retryAfter(value: string | null, now: Date): number | undefined {
  if (value === null) return undefined;
  const text = value.trim();
  if (/^\d{1,15}$/.test(text)) return Math.min(Number(text) * 1000, LONGEST_WAIT_MS);
  // RFC 9110: an HTTP date, in any of its three forms; Date.parse alone would also take "1.5" for a date.
  const until = /^[A-Z][a-z]{2,8},? .*\d{2}:\d{2}:\d{2}/.test(text) ? Date.parse(asUtc(text)) : Number.NaN;
  if (Number.isNaN(until)) return undefined;
  return Math.min(Math.max(until - now.getTime(), 0), LONGEST_WAIT_MS);
}

/** What a request that got no whole answer failed of. */
export function failureOfConnection(error: unknown, where: string): SourceError {
  const code = codeOf(error);
  const reason = code ?? 'the connection broke off';
  if (code !== undefined && SETTING_CODES.test(code)) {
    return new SourceError(
      'misconfigured',
      `${where} cannot be reached (${reason}); check the source's URL`,
      { cause: error },
    );
  }
  return new SourceError('retry', `${where} gave no whole answer (${reason})`, { cause: error });
}

function asUtc(text: string): string {
  return text.endsWith('GMT') ? text : `${text} GMT`;
}

/** The system's code, which fetch keeps at the end of a chain of causes. */
function codeOf(error: unknown): string | undefined {
  let found: string | undefined;
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string') found = at.code;
    // What fetch says of ports such as 6000, which it leaves to other protocols.
    else if (at.message === 'bad port') found = at.message;
  }
  return found;
}
