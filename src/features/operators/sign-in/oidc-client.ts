/**
 * OpenID Connect, the authorization code flow with PKCE. The issuer is asked what it offers at a sign-in, since it may be away when
 * this process starts.
 */
import * as client from 'openid-client';
import { type Claims, type OidcSettings, verifiedAddress } from '../oidc.ts';

/** What the browser keeps while its person is with the issuer. */
export interface Flow {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** A person whom the issuer vouches for. */
export interface Person {
  readonly subject: string;
  /** Verified by the issuer. */
  readonly address: string | undefined;
  readonly claims: Claims;
}

/** The issuer does not answer, or not now. */
export class IssuerAway extends Error {}
/** The answer is not accepted: `message` is a code of OAuth, or of the problem that was found; no secret. */
export class SignInRefused extends Error {}

/** Seconds of one request to the issuer. */
const ANSWER_WITHIN_S = 10;
/** What the issuer offers may change. */
const DISCOVERED_FOR_MS = 3_600_000;

/** @param callback the address to which the issuer sends people back @param now milliseconds */
export function openOidc(settings: OidcSettings, callback: string, now: () => number) {
  let known: { readonly found: Promise<client.Configuration>; readonly until: number } | undefined;
  /** Forgets the metadata of the issuer after a failure: its keys may be new, and the next try reads them. */
  const orForget = <T>(answer: Promise<T>): Promise<T> =>
    understood(answer).catch((error: unknown) => {
      known = undefined;
      throw error;
    });
  const configuration = (): Promise<client.Configuration> => {
    if (known === undefined || now() >= known.until)
      known = { found: discover(settings), until: now() + DISCOVERED_FOR_MS };
    return orForget(known.found);
  };
  return {
    /** Where a person is sent, and what the browser has to bring back. @throws IssuerAway */
    async begin(): Promise<{ readonly url: URL; readonly flow: Flow }> {
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
     * Who has come back: the claims of the ID token, whose signature, issuer, audience, times and nonce are checked, and
     * of the userinfo endpoint where there is one. @param search of the address to which they came back
     * @throws IssuerAway @throws SignInRefused
     */
    async finish(search: string, { state, nonce, verifier }: Flow): Promise<Person> {
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
      if (claims === undefined) throw new SignInRefused('there is no ID token');
      const { sub: subject } = claims;
      const address = verifiedAddress(claims);
      if (config.serverMetadata().userinfo_endpoint === undefined) return { subject, address, claims };
      const more = await understood(client.fetchUserInfo(config, tokens.access_token, subject));
      // One document states both an address and that it is verified.
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
    // The setting allows it for this machine alone.
    execute: server.protocol === 'http:' ? [client.allowInsecureRequests] : [],
    timeout: ANSWER_WITHIN_S,
  });
  // By the standard TLS may stand for the signature of a token that comes from the issuer itself. A key is more.
  client.enableNonRepudiationChecks(config);
  return config;
}

/** @throws IssuerAway @throws SignInRefused */
async function understood<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw isAway(error)
      ? new IssuerAway('the issuer does not answer', { cause: error })
      : new SignInRefused(codeOf(error), { cause: error });
  }
}

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
