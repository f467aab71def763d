/** An OpenID Connect provider on a free loopback port. It signs with RS256 and can misbehave on request. */
import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export const CLIENT = { id: 'fleetbook', secret: 'the secret of the client' };

export interface OidcProvider extends AsyncDisposable {
  readonly issuer: string;
  /** The signed-in person. */
  person: Readonly<Record<string, unknown>> & { readonly sub: string };
  /** Claims that replace the correct ones. */
  wrong: Readonly<Record<string, unknown>>;
  /** Claims that only the userinfo endpoint returns. */
  userinfo: Readonly<Record<string, unknown>> | undefined;
  /** Signs with an unpublished key. */
  forges: boolean;
  /** The status of each answer during an outage. */
  away: number | undefined;
  /** The token endpoint answers after this is settled. */
  wait: Promise<void> | undefined;
  /** Replaces the key. */
  rotate(): void;
  /** Parameters of the browsers' requests. */
  readonly requested: Readonly<Record<string, string>>[];
  /** The number of requests of each path. */
  readonly hits: ReadonlyMap<string, number>;
}

interface Grant {
  readonly requested: Readonly<Record<string, string>>;
  used: boolean;
}

const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

function keyPair() {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const kid = randomUUID();
  return { privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' } };
}

/** The first key of each provider, and one that no provider publishes. Making a key takes as much time as a test. */
let keys:
  | { readonly first: ReturnType<typeof keyPair>; readonly foreign: ReturnType<typeof keyPair> }
  | undefined;

export async function oidcProvider(): Promise<OidcProvider> {
  keys ??= { first: keyPair(), foreign: keyPair() };
  const { foreign } = keys;
  let key = keys.first;
  const grants = new Map<string, Grant>();
  const hits = new Map<string, number>();

  const signed = (claims: object, privateKey: KeyObject) => {
    const head = `${base64({ alg: 'RS256', typ: 'JWT', kid: key.jwk.kid })}.${base64(claims)}`;
    return `${head}.${sign('sha256', Buffer.from(head), privateKey).toString('base64url')}`;
  };
  const idToken = ({ requested }: Grant) => {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: it.issuer, aud: CLIENT.id, iat: now, exp: now + 300, nonce: requested.nonce };
    return signed({ ...claims, ...it.person, ...it.wrong }, (it.forges ? foreign : key).privateKey);
  };
  const token = async (request: IncomingMessage): Promise<[status: number, body: object]> => {
    const form = Object.fromEntries(new URLSearchParams(await text(request)));
    const grant = grants.get(form.code ?? '');
    const credentials = Buffer.from(request.headers.authorization?.slice('Basic '.length) ?? '', 'base64');
    const [id, secret] = credentials.toString().split(':');
    if (id !== CLIENT.id || decodeURIComponent((secret ?? '').replaceAll('+', ' ')) !== CLIENT.secret)
      return [401, { error: 'invalid_client' }];
    const challenge = createHash('sha256')
      .update(form.code_verifier ?? '')
      .digest('base64url');
    const isGood =
      grant !== undefined &&
      !grant.used &&
      grant.requested.code_challenge === challenge &&
      grant.requested.redirect_uri === form.redirect_uri;
    if (!isGood) return [400, { error: 'invalid_grant' }];
    grant.used = true;
    return [200, { access_token: 'access', token_type: 'Bearer', expires_in: 300, id_token: idToken(grant) }];
  };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', it.issuer);
    hits.set(url.pathname, (hits.get(url.pathname) ?? 0) + 1);
    const json = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (it.away !== undefined) return json(it.away, { error: 'server_error' });
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        return json(200, {
          issuer: it.issuer,
          authorization_endpoint: `${it.issuer}/authorize`,
          token_endpoint: `${it.issuer}/token`,
          jwks_uri: `${it.issuer}/jwks`,
          ...(it.userinfo && { userinfo_endpoint: `${it.issuer}/userinfo` }),
          response_types_supported: ['code'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['RS256'],
          code_challenge_methods_supported: ['S256'],
        });
      case '/jwks':
        return json(200, { keys: [key.jwk] });
      case '/userinfo':
        return json(200, { sub: it.person.sub, ...it.userinfo });
      case '/authorize': {
        const requested = Object.fromEntries(url.searchParams);
        it.requested.push(requested);
        const code = randomUUID();
        grants.set(code, { requested, used: false });
        const back = new URL(requested.redirect_uri ?? '');
        back.search = new URLSearchParams({ code, state: requested.state ?? '' }).toString();
        return response.writeHead(302, { location: back.href }).end();
      }
      case '/token':
        await it.wait;
        return json(...(await token(request)));
      default:
        return json(404, {});
    }
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const it: Omit<OidcProvider, 'requested'> & { requested: Record<string, string>[] } = {
    issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    person: { sub: 'unknown' },
    wrong: {},
    userinfo: undefined,
    forges: false,
    away: undefined,
    wait: undefined,
    requested: [],
    hits,
    rotate() {
      key = keyPair();
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
  return it;
}
