import { z } from 'zod';
import { label } from '../schema/fields.ts';

const error = 'must be a URL that starts with https:// or http://';
const url = z
  .string({ error })
  .refine((text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), { error });

const scope = label.optional().describe('scope of the token, with blanks between several');

/**
 * The fields of credentials that renew themselves, by type. In the file, a field whose name ends with `Env` names the
 * variable with a secret; in the environment it is the secret itself.
 */
export const CREDENTIAL_TYPES = {
  'client-credentials': z
    .strictObject({
      type: z.literal('client-credentials'),
      tenantId: label.optional().describe('id of the Microsoft Entra tenant'),
      clientId: label.describe('id of the application'),
      clientSecretEnv: label.describe('secret of the application'),
      tokenUrl: url.optional().describe('token endpoint of the authorization server'),
      scope,
    })
    .describe('an application and its secret (OAuth 2.0 client credentials)'),
  'managed-identity': z
    .strictObject({
      type: z.literal('managed-identity'),
      clientId: label
        .optional()
        .describe('client id of a user-assigned identity; the system-assigned one when absent'),
      metadataUrl: url
        .optional()
        .describe('address of the metadata service; `http://169.254.169.254` when absent'),
    })
    .describe('the managed identity of the virtual machine that runs Fleetbook'),
  'service-account': z
    .strictObject({
      type: z.literal('service-account'),
      keyFile: label.describe('path of the JSON key of a service account'),
      scope,
    })
    .describe('the key of a service account'),
  'metadata-server': z
    .strictObject({
      type: z.literal('metadata-server'),
      account: label
        .optional()
        .describe('e-mail address of one of the service accounts of the machine; `default` when absent'),
      metadataUrl: url
        .optional()
        .describe('address of the metadata server; `http://metadata.google.internal` when absent'),
    })
    .describe('the service account of the machine, or of the pod, that runs Fleetbook'),
} as const;

export type CredentialType = keyof typeof CREDENTIAL_TYPES;

export const CREDENTIAL_TYPE_NAMES = Object.keys(CREDENTIAL_TYPES) as CredentialType[];

export const TypedCredentials = z.discriminatedUnion(
  'type',
  [
    CREDENTIAL_TYPES['client-credentials'],
    CREDENTIAL_TYPES['managed-identity'],
    CREDENTIAL_TYPES['service-account'],
    CREDENTIAL_TYPES['metadata-server'],
  ],
  { error: `must have a type: ${CREDENTIAL_TYPE_NAMES.join(', ')}` },
);
export type TypedCredentials = z.infer<typeof TypedCredentials>;

/** The token issuers of an adapter's provider, by type of credentials. An absent type is not supported. */
export interface TokenIssuers {
  /** In the token endpoint, that field replaces `{tenantId}`. */
  readonly 'client-credentials'?: { readonly tokenUrl: string; readonly scope: string };
  readonly 'managed-identity'?: { readonly resource: string };
  readonly 'service-account'?: { readonly scope: string };
  readonly 'metadata-server'?: { readonly scope: string };
}

/**
 * The form of a source's credentials. `x-auth-token` and `x-goog-api-key` are headers with the bare token. A token of
 * `basic-or-bearer` with a colon is sent as HTTP Basic. With `optional-bearer`, the upstream also answers without a token. With
 * `exo2-hmac-sha256`, the token is `key:secret`, and the secret signs each request.
 */
export type CredentialKind =
  | 'none'
  | 'bearer'
  | 'optional-bearer'
  | 'basic'
  | 'basic-or-bearer'
  | 'x-auth-token'
  | 'x-goog-api-key'
  | 'aivenv1'
  | 'exo2-hmac-sha256';
