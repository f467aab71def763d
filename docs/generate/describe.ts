import type { SourceMemoryUnit } from '../../src/domain/machine.ts';
import { FACT_FIELDS, MACHINE_FACTS } from '../../src/domain/machine-facts.ts';
import { environmentKey } from '../../src/sources/schema/options.ts';
import type {
  AnyCatalogueAdapter,
  ClusterAdapter,
  GenericCatalogueAdapter,
} from '../../src/sources/source.ts';
import { clusterSections } from './describe-clusters.ts';
import { credentialRows, credentialSections } from './describe-credentials.ts';
import { CREDENTIALS, optionRows, row, table } from './markdown.ts';

const MEMORY: Record<SourceMemoryUnit, string> = {
  GB: 'GB (Decimal)',
  GiB: 'GiB (Binary)',
  MiB: 'MiB, whole GiB (Binary)',
  bytes: 'bytes, whole GiB (Binary)',
};

const INTRODUCTION = `# Adapters

Each adapter reads one provider or control plane. Its section has the settings of a source. \`npm run docs\` writes this page from the adapters.

An *adapter* is code that reads one kind of upstream, a *source* is a configured adapter, a *provider* is the vendor that readers see. The variables
below configure one source of each adapter, with the adapter's id. More sources, and limits of their guards, are in the JSON file that \`FLEETBOOK_CONFIG\` names:

\`\`\`json
{
  "catalogues": [
    {
      "id": "acme-basel",
      "adapter": "openstack",
      "url": "https://cloud.example.com:8774/v2.1",
      "tokenEnv": "ACME_TOKEN",
      "schedule": "22 * * * *",
      "options": {
        "provider": "Acme Cloud",
        "region": "dc1",
        "regionName": "Hall 1, Basel",
        "prices": "https://intranet.example.com/prices.csv"
      },
      "limits": { "rejectedShare": 0.2 }
    }
  ],
  "clusters": []
}
\`\`\`

Schedules are five cron fields, UTC. \`maxAge\` is the allowed age of the data, by default three of the longest intervals of the schedule; metrics
show it, and alerts use it. A failed request is repeated up to four times within a run, and a failed run until its next slot. Tokens are never in the
file, see [credentials](#credentials). An entry whose id equals its adapter, such as \`hetzner\`, replaces the source of the variables below.
\`HETZNER_TOKEN\` is then its token, and a variable that repeats a value of the entry, such as \`HETZNER_URL\`, stops the start.
[The file](configuration.md) has all fields and the limits of the guards.

A new provider in a source's options gets an id from 1000. Sources with the same provider add their regions to it. Upper and lower case do not matter;
the first spelling stays. Another name is another provider: the machines of the old one are retired as missing.

## Bounds

A run whose upstream exceeds one of these bounds stores nothing, and its message names the bound
([0019](decisions/0019-an-upstreams-answer-is-proven-whole.md)):

| bound | value |
|---|---|
| bytes of one answer, decompressed | 64 MiB; a page of Kubernetes 128 MiB, one line of its watch 8 MiB; a token 256 KiB; exchange rates 256 KiB |
| bytes of a streamed answer | 4 GiB; a price list, CSV or JSON, 512 MiB |
| rows of a price list | 250,000, each with up to 100,000 characters |
| JSON values of one whole answer, or of all pages of one list | 2,000,000; all pages of a list of Azure 50,000,000 |
| nested lists and objects | 64 levels |
| length of a number, of a string or key | 100 characters, 1 MiB |
| regions and database plans of one catalogue; machines of one region of AWS; objects of one kind in Kubernetes | 10,000 and 250,000; 100,000; 100,000 |

If two runs of a source end the process of their worker within an hour, each alone in it, or four in company, workers pause the source for an hour, and the alert
\`source_paused\` is open for that time. The source then runs again by itself. A person's *Run now* ends the pause. A watchdog ends a worker whose event
loop is blocked for \`BLOCKED_LIMIT\` seconds, which counts as an end too. Other sources go on.`;

const FACTS = `Facts are properties of a machine besides its size and price. The column lists the facts that an adapter can read. A fact that the payload lacks is
unknown. An adapter reads a fact from a name only if the provider documents its names. Local disk is in GB (10^9 bytes), on the host and included in
the price. Network is the outgoing rate in Mbit/s.`;

const ABSENT = `### Providers without an adapter

| provider | why |
|---|---|
| IONOS Cloud | prices belong to one contract (\`/billing/{contract}/products\`), and no public document maps meters to templates |
| Alibaba Cloud, Tencent Cloud | prices come only from APIs that need signed requests |

A [price-list](#price-list) can hold their machines and prices.`;

/** Returns the page about all adapters. */
export function adapterPage(
  catalogues: readonly AnyCatalogueAdapter[],
  clusters: readonly ClusterAdapter[],
): string {
  return `${[
    INTRODUCTION,
    ...credentialSections(catalogues),
    '## Machines',
    overview(catalogues),
    `${FACTS}${factless(catalogues)}`,
    ...catalogues.map(section),
    ABSENT,
    '## Clusters',
    ...clusterSections(clusters),
  ].join('\n\n')}\n`;
}

function overview(catalogues: readonly AnyCatalogueAdapter[]): string {
  const rows = catalogues.map((adapter) =>
    row([
      `[${adapter.id}](#${adapter.id})`,
      adapter.provider ? `${adapter.provider.name} (id ${adapter.provider.id})` : 'set by the source',
      CREDENTIALS[adapter.credentials],
      memoryOf(adapter),
      adapter.currency ?? adapter.currencyFrom,
      FACT_FIELDS.filter((fact) => adapter.facts?.includes(fact))
        .map((fact) => MACHINE_FACTS[fact].name)
        .join(', '),
      `\`${adapter.schedule}\``,
    ]),
  );
  return table(['adapter', 'provider', 'credentials', 'memory', 'currency', 'facts', 'schedule'], rows);
}

/** Returns the sentence about adapters without facts, or an empty text. */
function factless(catalogues: readonly AnyCatalogueAdapter[]): string {
  const names = catalogues.filter(({ facts = [] }) => facts.length === 0).map(({ id }) => `[${id}](#${id})`);
  return names.length === 0 ? '' : ` These adapters have no facts: ${names.join(', ')}.`;
}

function section(adapter: AnyCatalogueAdapter): string {
  const variables = [
    row([`\`${environmentKey(adapter.id, 'url')}\``, ...addressOf(adapter)]),
    ...credentialRows(adapter),
    row([`\`${environmentKey(adapter.id, 'schedule')}\``, 'schedule', `\`${adapter.schedule}\``]),
    row([
      `\`${environmentKey(adapter.id, 'maxAge')}\``,
      'allowed age of the data in seconds',
      'three intervals',
    ]),
    ...(adapter.provider ? [] : catalogueOptions(adapter)),
  ];
  const endpoints = adapter.endpoints.map((endpoint) => `\`${endpoint}\``).join(', ');
  return [
    `### ${adapter.id}`,
    `Reads ${endpoints}.`,
    table(['variable', 'meaning', 'default'], variables),
    ...(adapter.notes === undefined ? [] : [adapter.notes]),
  ].join('\n\n');
}

function catalogueOptions({ id, options }: GenericCatalogueAdapter): string[] {
  const described = (name: string) => `\`${environmentKey(id, name)}\``;
  return optionRows(options, described, (name) => `option \`${name}\`: `);
}

/** Returns the meaning and the default of the URL. */
function addressOf(adapter: AnyCatalogueAdapter): [string, string] {
  if (adapter.provider) return ['address of the API', adapter.baseUrl];
  return [adapter.readsFiles ? 'URL, or path on this machine' : 'address of the API', 'required'];
}

function memoryOf({ memoryUnit }: AnyCatalogueAdapter): string {
  return memoryUnit === undefined ? 'set by each row' : MEMORY[memoryUnit];
}
