import { describe, expect, it } from 'vitest';
import { NO_FEATURES, readConfig } from '../../../src/config/config.ts';
import { OPERATOR_SETTINGS, oidcSettings } from '../../../src/features/operators/settings.ts';

const DATABASE = { DATABASE_URL: 'postgres://127.0.0.1/x', REDIS_URL: 'redis://127.0.0.1' };
const WHOLE = {
  ...DATABASE,
  OPS_URL: 'https://fleetbook.example.com/',
  OPS_OIDC_ISSUER: 'https://login.example.com/realms/a',
  OPS_OIDC_CLIENT_ID: 'fleetbook',
  OPS_OIDC_CLIENT_SECRET: 'the-secret',
  OPS_OIDC_ROLES: 'admin=fleet-admins, operator=cn=sre ,viewer=*',
};

describe('OpenID Connect', () => {
  it('is configured by all its variables', () => {
    expect(oidcSettings(readConfig(WHOLE))).toEqual({
      issuer: 'https://login.example.com/realms/a',
      clientId: 'fleetbook',
      clientSecret: 'the-secret',
      origin: 'https://fleetbook.example.com',
      scopes: 'openid email profile',
      rolesClaim: 'groups',
      roles: [
        { role: 'admin', group: 'fleet-admins' },
        { role: 'operator', group: 'cn=sre' },
        { role: 'viewer', group: '*' },
      ],
    });
    expect(oidcSettings(readConfig(DATABASE))).toBeUndefined();
  });

  it.each([
    [{ OPS_OIDC_CLIENT_ID: 'x' }, 'OPS_OIDC_CLIENT_ID has no effect without OPS_OIDC_ISSUER; set both'],
    [{ ...WHOLE, OPS_URL: '' }, 'OPS_URL is not set; OPS_OIDC_ISSUER needs it'],
    [{ ...WHOLE, OPS_OIDC_ROLES: '' }, 'OPS_OIDC_ROLES is not set; OPS_OIDC_ISSUER needs it'],
    [{ ...WHOLE, OPS_OIDC_ROLES: 'king=x' }, 'OPS_OIDC_ROLES must be a list such as admin=fleet-admins'],
    [{ ...WHOLE, OPS_OIDC_ROLES: 'admin' }, '"admin" is not role=group (roles: viewer, operator, admin)'],
    [{ ...WHOLE, OPS_URL: 'https://x.example/ops' }, 'OPS_URL must be a URL without a path'],
    [
      { ...WHOLE, OPS_OIDC_ISSUER: 'http://x.example' },
      'OPS_OIDC_ISSUER must be a URL that starts with https://',
    ],
    [{ ...WHOLE, OPS_OIDC_SCOPES: 'email' }, 'OPS_OIDC_SCOPES must contain openid'],
  ])('%j is rejected, with the accepted values', (env, message) => {
    const read = () => readConfig({ ...DATABASE, ...env }, { ...NO_FEATURES, settings: OPERATOR_SETTINGS });
    expect(read).toThrow(message);
    expect(read).not.toThrow('the-secret');
  });
});
