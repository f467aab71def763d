import { z } from 'zod';
import type { IssuedToken } from './provider.ts';

const token = z.string().min(1).max(16_384);
const seconds = z.union([z.number(), z.string().regex(/^\d{1,12}$/)]).transform(Number);
const instant = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

/** RFC 6749, section 5.1; Azure's and Google's metadata services answer the same. */
export const OAuthAnswer = z
  .object({ access_token: token, expires_in: seconds.nullish() })
  .transform(({ access_token, expires_in }) => ({
    token: access_token,
    lifetimeMs: expires_in && expires_in * 1000,
  }));

const CommandAnswer = z.union(
  [
    z.object({ token, expiry: instant.nullish() }),
    z
      .object({ status: z.object({ token, expirationTimestamp: instant.nullish() }) })
      .transform(({ status }) => ({ token: status.token, expiry: status.expirationTimestamp })),
    OAuthAnswer,
    // `az account get-access-token`; its `expiresOn` is local time without a zone.
    z.object({ accessToken: token, expires_on: seconds.nullish() }).transform((answer) => ({
      token: answer.accessToken,
      expiry: answer.expires_on && answer.expires_on * 1000,
    })),
  ],
  { error: 'has no token' },
);

/** Returns the token in the output of a command: the text itself, or JSON in a known form; undefined for other output. */
export function tokenInOutput(output: string, now: number): IssuedToken | undefined {
  const text = output.trim();
  if (!text.startsWith('{'))
    return /^[^\s]+$/.test(text) ? { token: text, lifetimeMs: undefined } : undefined;
  const { data } = CommandAnswer.safeParse(jsonIn(text));
  if (data === undefined) return undefined;
  if ('lifetimeMs' in data) return { token: data.token, lifetimeMs: data.lifetimeMs ?? undefined };
  // If it has expired already, the upstream's 401 reports that.
  return { token: data.token, lifetimeMs: data.expiry == null ? undefined : Math.max(data.expiry - now, 0) };
}

/** Returns the value of a JSON text; undefined if it is invalid. The parser's message would quote the text. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
