/** Reads how operators sign in by OpenID Connect. */

import type { Settings } from '../../config/settings.ts';
import type { OidcSettings } from './oidc.ts';

const NEEDED = ['OPS_OIDC_CLIENT_ID', 'OPS_OIDC_CLIENT_SECRET', 'OPS_OIDC_ROLES', 'OPS_URL'] as const;

/** Undefined without OPS_OIDC_ISSUER. Everything that is wrong is added to `problems`, a line each. */
export function readOidc(settings: Settings, problems: string[]): OidcSettings | undefined {
  const { OPS_OIDC_ISSUER: issuer } = settings;
  if (issuer === undefined) {
    for (const name of NEEDED.filter((each) => each.startsWith('OPS_OIDC_')))
      if (settings[name] !== undefined) problems.push(`${name} has no use without OPS_OIDC_ISSUER; set both`);
    return undefined;
  }
  for (const name of NEEDED)
    if (settings[name] === undefined) problems.push(`${name} is not set; OPS_OIDC_ISSUER needs it`);
  const {
    OPS_OIDC_CLIENT_ID: clientId,
    OPS_OIDC_CLIENT_SECRET: clientSecret,
    OPS_OIDC_ROLES: roles,
    OPS_URL: origin,
  } = settings;
  if (clientId === undefined || clientSecret === undefined || roles === undefined || origin === undefined)
    return undefined;
  const { OPS_OIDC_SCOPES: scopes, OPS_OIDC_ROLES_CLAIM: rolesClaim } = settings;
  return { issuer, clientId, clientSecret, origin, scopes, rolesClaim, roles };
}
