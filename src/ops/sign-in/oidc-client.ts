/**
 * OpenID Connect, the authorization code flow with PKCE. Loaded only where it is configured. The issuer is asked what it
 * offers when somebody signs in: it may be away when this process starts.
 */
import * as client from 'openid-client';
import { type Claims, type OidcSettings, verifiedAddress } from '../../domain/oidc.ts';

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
/** What came back is no good: `message` is a code of OAuth, or of what was found wrong; no secret. */
export class SignInRefused extends Error {}

/** Seconds of one request to the issuer. */
const ANSWER_WITHIN_S = 10;
/** What the issuer offers may change. */
const DISCOVERED_FOR_MS = 3_600_000;

/** @param callback the address to which the issuer sends people back @param now milliseconds */
export function openOidc(settings: OidcSettings, callback: string, now: () => number) {
  let known: { readonly configuration: Promise<client.Configuration>; readonly until: number } | undefined;
  const configuration = (): Promise<client.Configuration> => {
    if (known === undefined || now() >= known.until) {
      const found = discover(settings);
      const asked = { configuration: found, until: now() + DISCOVERED_FOR_MS };
      known = asked;
      found.catch(() => {
        if (known === asked) known = undefined;
      });
    }
    return known.configuration;
  };
  return {
    /** Where a person is sent, and what the browser has to bring back. @throws IssuerAway */
    async begin(): Promise<{ readonly url: URL; readonly flow: Flow }> {
      const config = await told(configuration());
      const flow = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
      };
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: callback,
        scope: settings.scopes,
        state: flow.state,
        nonce: flow.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(flow.verifier),
        code_challenge_method: 'S256',
      });
      return { url, flow };
    },
    /**
     * Who has come back: the claims of the ID token, whose signature, issuer, audience, times and nonce are checked, and
     * of the userinfo endpoint where there is one. @param search of the address to which they came back
     * @throws IssuerAway @throws SignInRefused
     */
    async finish(search: string, flow: Flow): Promise<Person> {
      const config = await told(configuration());
      const granted = client.authorizationCodeGrant(config, new URL(search, callback), {
        expectedState: flow.state,
        expectedNonce: flow.nonce,
        pkceCodeVerifier: flow.verifier,
        idTokenExpected: true,
      });
      // It may sign by other keys now: the next try asks for them.
      granted.catch(() => {
        known = undefined;
      });
      const tokens = await told(granted);
      const claims = tokens.claims();
      if (claims === undefined) throw new SignInRefused('there is no ID token');
      const subject = claims.sub;
      const address = verifiedAddress(claims);
      if (config.serverMetadata().userinfo_endpoint === undefined) return { subject, address, claims };
      const more = await told(client.fetchUserInfo(config, tokens.access_token, claims.sub));
      // One document states both an address and that it is verified.
      return { subject, address: address ?? verifiedAddress(more), claims: { ...more, ...claims } };
    },
  };
}

async function discover({ issuer, clientId, clientSecret }: OidcSettings): Promise<client.Configuration> {
  const server = new URL(issuer);
  // The setting allows it for this machine alone.
  const execute = server.protocol === 'http:' ? [client.allowInsecureRequests] : [];
  const found = await client.discovery(server, clientId, clientSecret, undefined, {
    execute,
    timeout: ANSWER_WITHIN_S,
  });
  const metadata = found.serverMetadata();
  const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  const authentication = methods.includes('client_secret_basic')
    ? client.ClientSecretBasic(clientSecret)
    : client.ClientSecretPost(clientSecret);
  const config = new client.Configuration(metadata, clientId, undefined, authentication);
  config.timeout = ANSWER_WITHIN_S;
  for (const apply of execute) apply(config);
  // By the standard TLS may stand for the signature of a token that comes from the issuer itself. A key is more.
  client.enableNonRepudiationChecks(config);
  return config;
}

/** @throws IssuerAway @throws SignInRefused */
async function told<T>(asking: Promise<T>): Promise<T> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof IssuerAway || error instanceof SignInRefused) throw error;
    throw isAway(error)
      ? new IssuerAway('the issuer does not answer', { cause: error })
      : new SignInRefused(codeOf(error), { cause: error });
  }
}

function isAway(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause) {
    if (each.name === 'TimeoutError' || each.message === 'fetch failed') return true;
  }
  const { code, status, cause } = error as { code?: unknown; status?: unknown; cause?: unknown };
  const answered = cause instanceof Response ? cause.status : status;
  return code === 'OAUTH_TIMEOUT' || (typeof answered === 'number' && answered >= 500);
}

/** `access_denied`, `invalid_grant`, `OAUTH_JWT_CLAIM_COMPARISON_FAILED`. */
function codeOf(error: unknown): string {
  const { error: code, code: kind, cause } = error as { error?: unknown; code?: unknown; cause?: unknown };
  const found = [code, (cause as { code?: unknown } | undefined)?.code, kind].find(
    (each) => typeof each === 'string' && /^[\w-]{1,64}$/.test(each),
  );
  return typeof found === 'string' ? found : 'not understood';
}
