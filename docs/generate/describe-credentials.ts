/** The part of the page on adapters that tells of credentials. Pure. */
import { credentialVariable, typesOf } from '../../src/sources/credentials/open.ts';
import { CREDENTIAL_TYPES, type CredentialType } from '../../src/sources/credentials/types.ts';
import { descriptionOf, environmentKey } from '../../src/sources/schema/options.ts';
import type { AnyCatalogueAdapter } from '../../src/sources/source.ts';
import { CREDENTIALS, row, table } from './markdown.ts';

const INTRODUCTION = `A source has one of these, or none:

- a **token** that stays as it is: \`<ID>_TOKEN\`, in the file \`tokenEnv\`, the name of the variable that holds it;
- a **command** that prints one: \`<ID>_TOKEN_COMMAND\`, in the file \`tokenCommand\`;
- **credentials that renew themselves**: \`<ID>_CREDENTIAL_TYPE\` with the variables of that type, in the file
  \`credentials\`. Without a type no variable of a vendor is read, whatever else uses it on the same machine.

A token that lives for a while is kept in memory, renewed shortly before it expires, and once when the upstream refuses
it (401). While none can be had the source keeps what it has, and \`fleetbook status\` says why. Neither a token nor what
a command prints is ever logged.

A command is a program and its arguments, as plain words or as a JSON list; no shell reads them. It runs where the worker
does, ends within 30 seconds, and prints the token alone or JSON: \`{"token": …, "expiry": "2026-03-01T12:00:00Z"}\`, kubectl's \`ExecCredential\`,
what an OAuth 2.0 server answers, or what \`az account get-access-token\` prints. A token without an expiry is asked for
again after five minutes. What it writes to standard error is dropped: run it by hand to see that.

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

Any source that wants a bearer token may have one from an OAuth 2.0 server, e.g. that of a gateway before it:

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

/** What can be said of credentials, for every adapter. */
export function credentialSections(adapters: readonly AnyCatalogueAdapter[]): string[] {
  const rows = Object.entries(CREDENTIAL_TYPES).flatMap(([type, shape]) => {
    const has = adapters.filter(({ tokenIssuers }) => tokenIssuers?.[type as CredentialType]);
    const named = has.map(({ id }) => `[${id}](#${id})`).join(', ');
    const where = type === 'client-credentials' ? `${named}, whoever wants a bearer token` : named;
    return [
      row([`\`${type}\``, '', `${descriptionOf(shape)}: ${where}`]),
      ...Object.entries(shape.shape).flatMap(([name, field]) =>
        name === 'type'
          ? []
          : [
              row([
                '',
                `\`${name}\``,
                descriptionOf(field) + (name.endsWith('Env') ? ', by the name of its variable' : ''),
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

/** The variables by which the default source of an adapter gets its credentials. */
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
      'in its place: a command that prints it, see [credentials](#credentials)',
      '',
    ]),
    ...(types.length === 0
      ? []
      : [row([`\`${credentialVariable(id, 'type')}\``, `in their place: ${named}`, ''])]),
    ...[...fields].map(([key, meanings]) => row([`\`${key}\``, meanings.join('; '), ''])),
    ...(apiKey === undefined
      ? []
      : [row([`\`${environmentKey(id, 'apiKey')}\``, apiKey.describe, 'may be left out'])]),
  ];
}
