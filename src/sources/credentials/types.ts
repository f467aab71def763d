/** Credentials that renew themselves: the fields of each type, in the file and in the environment. */
import { z } from 'zod';
import { label } from '../schema/fields.ts';

const url = z
  .string({ error: 'must be a URL that starts with https:// or http://' })
  .refine((text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), {
    error: 'must be a URL that starts with https:// or http://',
  });

/** A field whose name ends with `Env` names the variable that holds a secret; the environment has the secret itself. */
export const CREDENTIAL_TYPES = {
  'client-credentials': z
    .strictObject({
      type: z.literal('client-credentials'),
      tenantId: label.optional().describe('id of the Microsoft Entra tenant'),
      clientId: label.describe('id of the application'),
      clientSecretEnv: label.describe('secret of the application'),
      tokenUrl: url.optional().describe('token endpoint of the authorization server'),
      scope: label.optional().describe('what the token is asked for, with blanks between several'),
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
    .describe('the managed identity of the virtual machine that Fleetbook runs on'),
  'service-account': z
    .strictObject({
      type: z.literal('service-account'),
      keyFile: label.describe('path of the JSON key of a service account'),
      scope: label.optional().describe('what the token is asked for, with blanks between several'),
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
    .describe('the service account of the machine, or of the pod, that Fleetbook runs in'),
} as const;

export type CredentialType = keyof typeof CREDENTIAL_TYPES;

export const CREDENTIAL_TYPE_NAMES = Object.keys(CREDENTIAL_TYPES) as CredentialType[];

/** The field `credentials` of a source in the configuration file. */
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

/** How an adapter's provider issues tokens, by type of credentials. A type that is absent is not supported there. */
export interface TokenIssuers {
  /** In the token endpoint, `{tenantId}` stands for that field. */
  readonly 'client-credentials'?: { readonly tokenUrl: string; readonly scope: string };
  readonly 'managed-identity'?: { readonly resource: string };
  readonly 'service-account'?: { readonly scope: string };
  readonly 'metadata-server'?: { readonly scope: string };
}

/**
 * How a source wants its credentials; the configuration says where they come from. `x-auth-token` and
 * `x-goog-api-key` are the bare token in the header of that name. With `basic-or-bearer` the form of the token decides:
 * `user:password` is sent as HTTP Basic, anything else as a bearer token, which never holds a colon (RFC 6750).
 * With `optional-bearer` the upstream answers without a token too, but tells less. With `exo2-hmac-sha256` the token is
 * `key:secret`, and the secret signs each request.
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
