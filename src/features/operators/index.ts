/** Operators with roles: they sign in with tokens or by OpenID Connect. See docs/console.md. */
import type { Feature } from '../../app/feature.ts';
import { addOperators } from './command-line.ts';
import { OPERATOR_SETTINGS, oidcSettings } from './settings.ts';

export const operatorsFeature: Feature = {
  name: 'operators',
  settings: OPERATOR_SETTINGS,

  operations: async ({ config, store }) =>
    (await import('./sign-in/part.ts')).operatorsPart({ store, oidc: oidcSettings(config) }),
  up: async (context) => (await import('./up.ts')).signInOfUp(context),

  commands: addOperators,
};
