/** Sections about credentials of the page about adapters. */
import { credentialVariable, typesOf } from '../../src/sources/credentials/open.ts';
import { CREDENTIAL_TYPES, type CredentialType } from '../../src/sources/credentials/types.ts';
import { descriptionOf, environmentKey } from '../../src/sources/schema/options.ts';
import type { AnyCatalogueAdapter } from '../../src/sources/source.ts';
import { CREDENTIALS, row, table } from './markdown.ts';

const INTRODUCTION = `A source has one of these, or none:

- a fixed **token**: \`<ID>_TOKEN\`, in the file \`tokenEnv\`, the name of its variable;
- a **command** that prints a token: \`<ID>_TOKEN_COMMAND\`, in the file \`tokenCommand\`;
- **credentials that renew themselves**: \`<ID>_CREDENTIAL_TYPE\` with the variables of that type, in the file \`credentials\`. Without a type
  Fleetbook reads no variable of a vendor.

A token with an expiry is kept in memory, and renewed shortly before it expires, and once when the upstream refuses it (401). Without a valid token the
source keeps its data, and \`fleetbook status\` shows the reason. Fleetbook never logs a token or the output of a command.

A command is a program with arguments, as plain words or as a JSON list; no shell interprets them. It runs on the worker's machine for up to 30 seconds. It
prints the token alone or JSON: \`{"token": …, "expiry": "2026-03-01T12:00:00Z"}\`, kubectl's \`ExecCredential\`, the response of an OAuth 2.0 server, or
the output of \`az account get-access-token\`. A token without an expiry is requested again after five minutes. Standard error is not logged: run the
command by hand to see it.

\`\`\`sh
HETZNER_TOKEN_COMMAND="vault kv get -field=token secret/hetzner"
AZURE_TOKEN_COMMAND="az account get-access-token --resource https://management.azure.com/"
GCP_TOKEN_COMMAND="gcloud auth print-access-token"
\`\`\``;

const EXAMPLES = `Azure with an application, in the environment or in the file, or with the machine's identity:

\`\`\`sh
AZURE_URL=https://management.azure.com/subscriptions/00000000-0000-0000-0000-000000000000
AZURE_CREDENTIAL_TYPE=client-credentials
AZURE_TENANT_ID=00000000-0000-0000-0000-000000000000
AZURE_CLIENT_ID=00000000-0000-0000-0000-000000000000
AZURE_CLIENT_SECRET=…
\`\`\`

\`\`\`json
{
  "catalogues": [
    {
      "id": "azure",
      "adapter": "azure",
      "url": "https://management.azure.com/subscriptions/00000000-0000-0000-0000-000000000000",
      "credentials": { "type": "managed-identity" }
    }
  ]
}
\`\`\`

Google Cloud with the key of a service account, or with the account of the machine; prices may be read with an API key:

\`\`\`sh
GCP_URL=https://compute.googleapis.com/compute/v1/projects/my-project
GCP_CREDENTIAL_TYPE=service-account
GCP_KEY_FILE=/run/secrets/fleetbook-gcp.json
\`\`\`

\`\`\`json
{
  "catalogues": [
    {
      "id": "gcp",
      "adapter": "gcp",
      "url": "https://compute.googleapis.com/compute/v1/projects/my-project",
      "credentials": { "type": "metadata-server" },
      "apiKeyEnv": "GCP_PRICES_KEY"
    }
  ]
}
\`\`\`

Any source with a bearer token may get it from an OAuth 2.0 server, e.g. of a gateway:

\`\`\`json
{
  "clusters": [
    {
      "id": "platform",
      "adapter": "json",
      "url": "https://platform.example.com/clusters",
      "credentials": {
        "type": "client-credentials",
        "tokenUrl": "https://login.example.com/oauth2/token",
        "clientId": "fleetbook",
        "clientSecretEnv": "PLATFORM_SECRET",
        "scope": "clusters.read"
      }
    }
  ]
}
\`\`\``;

/** Returns the sections about credentials, for all adapters. */
export function credentialSections(adapters: readonly AnyCatalogueAdapter[]): string[] {
  const rows = Object.entries(CREDENTIAL_TYPES).flatMap(([type, shape]) => {
    const has = adapters.filter(({ tokenIssuers }) => tokenIssuers?.[type as CredentialType]);
    const named = has.map(({ id }) => `[${id}](#${id})`).join(', ');
    const where = type === 'client-credentials' ? `${named}, and sources with a bearer token` : named;
    return [
      row([`\`${type}\``, '', `${descriptionOf(shape)}: ${where}`]),
      ...Object.entries(shape.shape).flatMap(([name, field]) =>
        name === 'type'
          ? []
          : [
              row([
                '',
                `\`${name}\``,
                descriptionOf(field) + (name.endsWith('Env') ? ' (name of its variable)' : ''),
              ]),
            ],
      ),
    ];
  });
  return [
    '## Credentials',
    INTRODUCTION,
    table(['type', 'field in the file', 'meaning'], rows),
    'In the environment a field is a variable of its adapter, in capitals: `clientId` of `azure` is `AZURE_CLIENT_ID`, and\n`clientSecretEnv` is `AZURE_CLIENT_SECRET`, the secret itself.',
    EXAMPLES,
  ];
}

/** Returns the rows for the credentials of an adapter's default source. */
export function credentialRows(adapter: AnyCatalogueAdapter): string[] {
  const { id, credentials, tokenIssuers, apiKey } = adapter;
  if (credentials === 'none') return [];
  const types = typesOf(adapter).filter((type) => tokenIssuers?.[type] !== undefined);
  const fields = new Map<string, string[]>();
  for (const type of types) {
    for (const [name, field] of Object.entries(CREDENTIAL_TYPES[type].shape)) {
      if (name === 'type') continue;
      const key = credentialVariable(id, name);
      fields.set(key, [...(fields.get(key) ?? []), `\`${type}\`: ${descriptionOf(field)}`]);
    }
  }
  const named = types.map((type) => `\`${type}\``).join(' or ');
  return [
    row([`\`${environmentKey(id, 'token')}\``, CREDENTIALS[credentials], '']),
    row([
      `\`${environmentKey(id, 'tokenCommand')}\``,
      'instead: a command that prints it, see [credentials](#credentials)',
      '',
    ]),
    ...(types.length === 0 ? [] : [row([`\`${credentialVariable(id, 'type')}\``, `instead: ${named}`, ''])]),
    ...[...fields].map(([key, meanings]) => row([`\`${key}\``, meanings.join('; '), ''])),
    ...(apiKey === undefined
      ? []
      : [row([`\`${environmentKey(id, 'apiKey')}\``, apiKey.describe, 'optional'])]),
  ];
}
