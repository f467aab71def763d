/**
 * OpenID Connect: the authorization code flow with PKCE. A sign-in reads the issuer's metadata, since the issuer may not answer
 * when this process starts.
 */
import * as client from 'openid-client';
import { shared } from '../../../ops/shared-reads.ts';
import { verifiedAddress } from '../claims.ts';
import type { OidcSettings } from '../settings.ts';

export interface Flow {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** A sign-in that failed. The message is for the person. */
export class Refused extends Error {
  readonly status: number;
  /** For the audit log, without secrets; undefined for a problem of a server. */
  readonly code: string | undefined;
  readonly account: string | undefined;

  constructor(status: number, message: string, code?: string, account?: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.account = account;
  }
}

/** OpenID Connect Core 1.0, section 2. Spaces alone identify no person. */
const SUBJECT = /^(?! *$)[\x20-\x7e]{1,255}$/;

const TIMEOUT_S = 10;
const METADATA_MS = 3_600_000;

export function openOidc(settings: OidcSettings, callback: string, now: () => number) {
  const metadata = shared(() => discover(settings), METADATA_MS, now);
  /** Drops the issuer's metadata after a failure: the issuer may have new keys, which the next sign-in reads. */
  const orForget = <T>(answer: Promise<T>): Promise<T> =>
    understood(answer).catch((error: unknown) => {
      metadata.invalidate();
      throw error;
    });
  const configuration = () => orForget(metadata());
  return {
    /** Returns the issuer's sign-in address, and the secrets for the browser. @throws Refused */
    async begin() {
      const config = await configuration();
      const [state, nonce] = [client.randomState(), client.randomNonce()];
      const verifier = client.randomPKCECodeVerifier();
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: callback,
        scope: settings.scopes,
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      });
      return { url, flow: { state, nonce, verifier } };
    },
    /**
     * Returns the person, with the claims of the ID token and of the userinfo endpoint, if there is one. It checks the token's
     * signature, issuer, audience, times and nonce. @param search of the callback's address
     * @throws Refused
     */
    async finish(search: string, { state, nonce, verifier }: Flow) {
      const config = await configuration();
      const tokens = await orForget(
        client.authorizationCodeGrant(config, new URL(search, callback), {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        }),
      );
      const claims = tokens.claims();
      if (claims === undefined) throw refusedBy('there is no ID token');
      const { sub: subject } = claims;
      // All people without a subject would share one account.
      if (!SUBJECT.test(subject)) throw refusedBy('the ID token has no subject of 1 to 255 ASCII characters');
      const address = verifiedAddress(claims);
      if (config.serverMetadata().userinfo_endpoint === undefined) return { subject, address, claims };
      const more = await understood(client.fetchUserInfo(config, tokens.access_token, subject));
      // The same document must state the address and its verification.
      return { subject, address: address ?? verifiedAddress(more), claims: { ...more, ...claims } };
    },
  };
}

async function discover({ issuer, clientId, clientSecret }: OidcSettings): Promise<client.Configuration> {
  const server = new URL(issuer);
  const [basic, post] = [client.ClientSecretBasic(clientSecret), client.ClientSecretPost(clientSecret)];
  const authenticate: client.ClientAuth = (metadata, ...request) => {
    const { token_endpoint_auth_methods_supported: methods = ['client_secret_basic'] } = metadata;
    return (methods.includes('client_secret_basic') ? basic : post)(metadata, ...request);
  };
  const config = await client.discovery(server, clientId, undefined, authenticate, {
    // The setting allows http only for this machine.
    execute: server.protocol === 'http:' ? [client.allowInsecureRequests] : [],
    timeout: TIMEOUT_S,
  });
  // The standard accepts TLS instead of a signature for a token from the issuer itself. Check the signature anyway.
  client.enableNonRepudiationChecks(config);
  return config;
}

async function understood<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (isAway(error)) throw new Refused(503, 'The issuer does not answer; try again in a moment.');
    throw refusedBy(codeOf(error));
  }
}

const refusedBy = (code: string) =>
  new Refused(401, `The sign-in was refused: ${code}. Sign in again.`, code);

function isAway(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause)
    if (each.name === 'TimeoutError' || each.message === 'fetch failed') return true;
  const { code, status, cause } = error as { code?: unknown; status?: unknown; cause?: unknown };
  const answered = cause instanceof Response ? cause.status : status;
  return code === 'OAUTH_TIMEOUT' || (typeof answered === 'number' && answered >= 500);
}

/** `access_denied`, `invalid_grant`, `OAUTH_JWT_CLAIM_COMPARISON_FAILED`. */
function codeOf(error: unknown): string {
  const { error: code, code: kind, cause } = error as { error?: unknown; code?: unknown; cause?: unknown };
  const codes = [code, (cause as { code?: unknown } | undefined)?.code, kind].map(String);
  return codes.find((each) => /^[\w-]{1,64}$/.test(each) && each !== 'undefined') ?? 'not understood';
}
