import { z } from 'zod';
import { withoutQuery } from '../http/address.ts';
import { readBytes } from '../http/body.ts';
import { failureOfConnection, failureOfStatus } from '../http/failure.ts';
import { problemsOf } from '../schema/rows.ts';
import { badAnswer, misconfigured, passingFailure, SourceError } from '../source.ts';
import { jsonIn, OAuthAnswer } from './issued-token.ts';
import type { IssuedToken } from './provider.ts';

const TOKEN_MS = 20_000;
const MOST_ANSWER_BYTES = 256 * 1024;
const PASSING = new Set(['temporarily_unavailable', 'server_error', 'slow_down']);

const OAuthError = z.object({
  error: z.string().regex(/^[a-z_]{1,60}$/i),
  error_description: z.string().optional().catch(undefined),
});

export interface TokenRequest {
  readonly url: URL;
  readonly form?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly whenRefused: string;
  readonly whenUnreachable: string;
}

/**
 * Requests a token from an authorization server or a metadata service. Messages quote only error codes of the answer.
 * @throws SourceError `misconfigured` if it is refused, `retry` without an answer, `invalid` for an answer without a token
 */
export async function requestToken(request: TokenRequest): Promise<IssuedToken> {
  const { url, form } = request;
  const where = withoutQuery(url);
  const signal = AbortSignal.timeout(TOKEN_MS);
  try {
    const response = await fetch(url, {
      method: form === undefined ? 'GET' : 'POST',
      headers: { accept: 'application/json', ...request.headers },
      ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
      // Only the configured server may see the credentials.
      redirect: 'manual',
      signal,
    });
    const bytes = await readBytes(response.body ?? ReadableStream.from([]), MOST_ANSWER_BYTES, where);
    const payload = jsonIn(Buffer.from(bytes).toString('utf8'));
    if (response.status !== 200) throw refusal(response, payload, where, request.whenRefused);
    const { data, error } = OAuthAnswer.safeParse(payload);
    if (error !== undefined) throw badAnswer(`${where} answers no token: ${problemsOf(error)}`);
    return { token: data.token, lifetimeMs: data.lifetimeMs ?? undefined };
  } catch (error) {
    const { kind, message, cause, retryAfterMs } = meaning(error, where, signal.aborted, request);
    // No region of the source can be read without a token.
    throw new SourceError(kind, message, { cause, limitsAll: true, retryAfterMs });
  }
}

function meaning(error: unknown, where: string, late: boolean, request: TokenRequest): SourceError {
  if (error instanceof SourceError) return error;
  const { whenUnreachable } = request;
  if (!late) return failureOfConnection(error, where, whenUnreachable);
  return passingFailure(`${where} sent no token within ${TOKEN_MS} ms; ${whenUnreachable}`);
}

function refusal(response: Response, payload: unknown, where: string, remedy: string): SourceError {
  const { status, headers } = response;
  const { error, error_description: description = '' } = OAuthError.safeParse(payload).data ?? {};
  // A description may quote the request: only Microsoft's code in it is safe.
  const codes = [error, /\bAADSTS\d{4,8}\b/.exec(description)?.[0]].filter((code) => code !== undefined);
  const answer = `${where} answers ${status}${codes.length > 0 ? ` (${codes.join(', ')})` : ''}`;
  const passing = failureOfStatus(status, headers, where, new Date());
  // Azure's metadata service answers 410 during an update.
  if (passing?.kind === 'retry' || status === 410 || PASSING.has(error ?? ''))
    return new SourceError('retry', answer, { retryAfterMs: passing?.retryAfterMs });
  return misconfigured(`${answer} and no token; ${remedy}`);
}
