/** The operators' server with an issuer of OpenID Connect, and browsers that sign in there. */
import type { FastifyInstance } from 'fastify';
import { afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { auditRecords } from '../../../src/features/console/queries/audit.ts';
import type { OidcSettings } from '../../../src/features/operators/settings.ts';
import { openScene, type Scene } from '../../sync/scene.ts';
import { Browser, type Clock, openPages } from './accounts-scene.ts';
import { CLIENT, type OidcProvider, oidcProvider } from './oidc-provider.ts';

export const ORIGIN = 'http://fleetbook.test';
export const ADA = {
  sub: 'person-7',
  email: 'Ada@example.com',
  email_verified: true,
  preferred_username: 'ada.l',
  groups: ['sre', 'people'],
};

export let scene: Scene;
export let clock: Clock;
export let provider: OidcProvider;
export let app: FastifyInstance;
let closing: AsyncDisposableStack;

/** One database for all tests of a file, and an issuer and a server for each test. */
export function useOidc(): void {
  beforeAll(async () => {
    scene = await openScene();
    return () => scene[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    await scene.reset();
    closing = new AsyncDisposableStack();
    clock = { now: Date.now() };
    provider = closing.use(await oidcProvider());
    provider.person = ADA;
    app = await pages();
  });
  afterEach(() => closing.disposeAsync());
}

export async function pages(more: Partial<OidcSettings> = {}): Promise<FastifyInstance> {
  const oidc: OidcSettings = {
    issuer: provider.issuer,
    clientId: CLIENT.id,
    clientSecret: CLIENT.secret,
    origin: ORIGIN,
    scopes: 'openid email profile',
    rolesClaim: 'groups',
    roles: [
      { role: 'admin', group: 'fleet-admins' },
      { role: 'operator', group: 'sre' },
      { role: 'viewer', group: 'people' },
    ],
    ...more,
  };
  const made = await openPages(scene, clock, { oidc });
  return closing.use(made);
}

export const browserOf = (at = app) => new Browser(at, { accept: 'text/html' });

/** Signs in at the issuer. @returns the path of the callback */
export async function toIssuer(browser: Browser, next = '/'): Promise<string> {
  const sent = await browser.sendRequest('GET', `/login/oidc?next=${encodeURIComponent(next)}`);
  expect(sent.statusCode).toBe(303);
  const answered = await fetch(String(sent.headers.location), { redirect: 'manual' });
  const back = new URL(answered.headers.get('location') ?? '');
  expect(back.origin).toBe(ORIGIN);
  return back.pathname + back.search;
}
export async function signIn(browser = browserOf(), next = '/') {
  const answer = await browser.sendRequest('GET', await toIssuer(browser, next));
  return { browser, status: answer.statusCode, body: answer.body };
}
export const problemIn = (body: string) => /<p role="alert">(.*?)<\/p>/.exec(body)?.[1];
export const who = async (browser: Browser) => (await browser.sendRequest('GET', '/api/session', API)).json();
const API = { headers: { accept: 'application/json' } };
export const latest = async (limit = 1) => (await auditRecords(scene.store.db, { limit })).rows;
