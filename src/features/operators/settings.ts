import { BadSetting, text } from '../../config/setting-values.ts';
import {
  type Configured,
  type SettingDefinitions,
  secret,
  setting,
  settingsOf,
} from '../../config/settings.ts';
import { ROLES } from '../../domain/operator.ts';

const NO_ISSUER = { uselessWithout: 'OPS_OIDC_ISSUER' };

export const OPERATOR_SETTINGS = {
  OPS_OIDC_ISSUER: {
    ...setting(
      'OpenID Connect issuer for the sign-in of operators, see docs/console.md; unset: only tokens',
      issuer,
    ),
    needs: ['OPS_OIDC_CLIENT_ID', 'OPS_OIDC_CLIENT_SECRET', 'OPS_OIDC_ROLES', 'OPS_URL'],
  },
  OPS_OIDC_CLIENT_ID: { ...setting('client id at that issuer', text), ...NO_ISSUER },
  OPS_OIDC_CLIENT_SECRET: { ...secret('secret of that client', text), ...NO_ISSUER },
  OPS_OIDC_SCOPES: setting('scopes of the request to the issuer', scopes, 'openid email profile'),
  OPS_OIDC_ROLES: {
    ...setting(
      'roles of groups, e.g. admin=fleet-admins,operator=sre,viewer=*; * is every person of the issuer, and the highest role counts',
      roleRules,
    ),
    ...NO_ISSUER,
  },
  OPS_OIDC_ROLES_CLAIM: setting(
    'claim with a person’s groups, or the path to it, e.g. realm_access.roles',
    text,
    'groups',
  ),
} satisfies SettingDefinitions;

export type OidcSettings = NonNullable<ReturnType<typeof oidcSettings>>;

/** Returns undefined without an issuer. `origin` is the public one of the pages; the issuer redirects people to it. */
export function oidcSettings(config: Configured) {
  const {
    OPS_OIDC_ISSUER: issuer,
    OPS_OIDC_CLIENT_ID: clientId,
    OPS_OIDC_CLIENT_SECRET: clientSecret,
    OPS_OIDC_SCOPES: scopes,
    OPS_OIDC_ROLES: roles,
    OPS_OIDC_ROLES_CLAIM: rolesClaim,
  } = settingsOf(config, OPERATOR_SETTINGS);
  const { OPS_URL: origin } = config.settings;
  if (!issuer || !clientId || !clientSecret || !roles || !origin) return undefined;
  return { issuer, clientId, clientSecret, origin, scopes, rolesClaim, roles };
}

/** Accepts http only on loopback, where no other computer can listen. */
function issuer(value: string): string {
  const parsed = URL.parse(value);
  const isHere = parsed !== null && ['localhost', '127.0.0.1', '[::1]'].includes(parsed.hostname);
  if (parsed?.protocol === 'https:' || (isHere && parsed.protocol === 'http:')) return value;
  throw new BadSetting('must be a URL that starts with https:// (http:// for a server on this machine)');
}

function scopes(value: string): string {
  const list = value.split(/[ ,]+/).filter((each) => each !== '');
  if (!list.includes('openid')) throw new BadSetting('must contain openid, e.g. openid email profile groups');
  return list.join(' ');
}

function roleRules(value: string) {
  return value.split(',').map((part) => {
    const [, name, group] = /^\s*(\w+)=(.*\S)\s*$/.exec(part) ?? [];
    const role = ROLES.find((each) => each === name);
    if (role === undefined || group === undefined) {
      throw new BadSetting(
        `must be a list such as admin=fleet-admins,operator=sre,viewer=*; "${part.trim()}" is not role=group (roles: ${ROLES.join(', ')})`,
      );
    }
    return { role, group };
  });
}
