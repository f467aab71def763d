/** Accounts by OpenID Connect: issuer and subject identify a person, and a verified address names the account. */
import { describe, expect, it } from 'vitest';
import { neutralName } from '../../../src/features/operators/claims.ts';
import {
  issueToken,
  listOperators,
  setOperatorByOidc,
} from '../../../src/features/operators/db/operators.ts';
import { OPERATOR } from '../../sync/scene.ts';
import { addOperators, Browser } from './accounts-scene.ts';
import {
  ADA,
  app,
  browserOf,
  pages,
  problemIn,
  provider,
  scene,
  signIn,
  useOidc,
  who,
} from './oidc-scene.ts';

useOidc();

describe('an account of OpenID Connect', () => {
  it('does not get the account of an operator with tokens, unless it is handed over', async () => {
    await addOperators(scene, { 'ada@example.com': 'admin' });
    const refused = await signIn();
    expect([refused.status, problemIn(refused.body)]).toEqual([
      403,
      expect.stringContaining('fleetbook operator use-oidc ada@example.com'),
    ]);
    await setOperatorByOidc(scene.store.db, OPERATOR, 'ada@example.com');
    expect((await new Browser(app).signIn('ada@example.com')).statusCode).toBe(401);
    const { browser, status } = await signIn();
    expect([status, await who(browser)]).toEqual([200, expect.objectContaining({ role: 'operator' })]);
    // Another person with this name at the issuer does not get it.
    provider.person = { ...ADA, sub: 'person-8' };
    expect((await signIn()).status).toBe(403);
    // After another token, people of the issuer cannot use it.
    provider.person = ADA;
    const issued = await issueToken(scene.store.db, OPERATOR, 'ada@example.com', {
      name: null,
      expiresAt: null,
    });
    expect(await browser.status()).toBe(401);
    expect((await signIn()).status).toBe(403);
    expect((await new Browser(app).signIn('', issued?.token)).statusCode).toBe(303);
  });

  it('identifies a person by the subject, and keeps the name', async () => {
    await signIn();
    provider.person = { ...ADA, email: 'ada.lovelace@example.com' };
    const { browser } = await signIn();
    expect(await who(browser)).toMatchObject({ name: 'ada@example.com' });
  });

  const neutral = (subject: string) => neutralName({ issuer: provider.issuer, subject });

  it.each([
    ['an address that is not verified', { email: 'ada@example.com', email_verified: false }],
    ['an address verified as a text', { email: 'ada@example.com', email_verified: 'true' }],
    ['a preferred_username', { preferred_username: 'ada@example.com' }],
    // Its lower-case form is ASCII.
    ['an address with the sign of Kelvin', { email: '\u212Aim@example.com', email_verified: true }],
  ])('takes no name from %s', async (_, claims) => {
    provider.person = { sub: 'person-9', groups: ['sre'], ...claims };
    const { status, browser } = await signIn();
    expect([status, await who(browser)]).toEqual([
      200,
      expect.objectContaining({ name: neutral('person-9'), role: 'operator' }),
    ]);
    expect(await listOperators(scene.store.db)).toMatchObject([
      { name: neutral('person-9'), verifiedAddress: null },
    ]);
  });

  it('needs an address and its verification in one document', async () => {
    provider.person = { sub: 'person-9', groups: ['sre'], email: 'ada@example.com' };
    provider.userinfo = { email: 'eve@example.com', email_verified: true };
    const { browser } = await signIn(browserOf(await pages()));
    expect(await who(browser)).toMatchObject({ name: 'eve@example.com' });
  });

  it('gives a waiting account only to the person whose verified address is its name', async () => {
    await addOperators(scene, { 'ada@example.com': 'admin' });
    await setOperatorByOidc(scene.store.db, OPERATOR, 'ada@example.com');
    provider.person = { sub: 'eve', preferred_username: 'ada@example.com', groups: ['sre'] };
    expect(await who((await signIn()).browser)).toMatchObject({ name: neutral('eve') });
    provider.person = ADA;
    expect(await who((await signIn()).browser)).toMatchObject({ name: 'ada@example.com' });
  });

  it('keeps its name, and gets the verified address of each sign-in', async () => {
    await scene.sql`insert into operators (name, role, oidc_issuer, oidc_subject)
      values ('ada@example.com', 'admin', ${provider.issuer}, ${ADA.sub})`;
    await signIn();
    expect(await listOperators(scene.store.db)).toMatchObject([
      { name: 'ada@example.com', verifiedAddress: 'Ada@example.com' },
    ]);
  });
});
