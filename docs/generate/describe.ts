import type { SourceMemoryUnit } from '../../src/domain/machine.ts';
import { FACT_FIELDS, FACT_NAMES } from '../../src/domain/machine-facts.ts';
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
  GB: 'GB, sold as such (Decimal)',
  GiB: 'GiB (Binary)',
  MiB: 'MiB, whole GiB of them (Binary)',
  bytes: 'bytes, whole GiB of them (Binary)',
};

const INTRODUCTION = `# Adapters

Made from the adapters themselves; a test fails when this page is not what they say.

An *adapter* is code that reads one kind of upstream, a *source* is a configured instance of it, a *provider* is what
readers see. The variables below configure one source of each adapter, whose id is the adapter's. More sources, and
limits for their guards, go into the JSON file that \`FLEETBOOK_CONFIG\` names:

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

Schedules are five cron fields, UTC. The data of a source may be as old as \`maxAge\` says, which is three of the longest
intervals of its schedule unless it is given: metrics tell it, and alerts compare with it. A request that fails is repeated up to four times within a run, a run that fails
until its next slot. Tokens are never written into that file, see [credentials](#credentials). An entry
whose id and adapter are the same, such as \`hetzner\`, takes the place of the source that the variables below configure:
\`HETZNER_TOKEN\` then is its token, and a variable that both of them would need, such as \`HETZNER_URL\`, stops the start.
[The file](configuration.md) is described field by field, with the limits of the guards.

A provider that a source's options name gets an id from 1000 up when it is new; sources that name the same one fill it
together, each its own regions. Upper and lower case do not tell two providers apart, the first spelling stays. Another
name is another provider: the machines of the old one are retired as missing.

## Bounds

A run whose upstream exceeds one of these bounds stores nothing, and its message names the bound
([0019](decisions/0019-an-upstreams-answer-is-proven-whole.md)):

| bound | value |
|---|---|
| bytes of one answer, decompressed | 64 MiB; a page of Kubernetes 128 MiB, one line of its watch 8 MiB; a token 256 KiB; exchange rates 256 KiB |
| bytes of an answer that is read as a stream | 4 GiB; a price list, CSV or JSON, 512 MiB |
| rows of a price list | 250,000; each of up to 100,000 characters |
| JSON values of one answer that is read whole, or of all pages of one list | 2,000,000; all pages of a list of Azure 50,000,000 |
| levels of lists and objects within each other | 64 |
| length of a number, of a string or key | 100 characters, 1 MiB |
| regions of one catalogue; machines of one region of AWS; objects of one kind in Kubernetes | 10,000; 100,000; 100,000 |

A source whose runs end the process of their worker twice, each alone in it, is *set aside*: the worker disables it, the
alert \`source_set_aside\` opens, and \`fleetbook status\` and the console say why. The other sources go on. \`fleetbook source enable
<id>\` reads it again. Restarts and deployments do not count.`;

const FACTS = `Facts are what an upstream states of a machine besides its size and price; each adapter's column names those that it
can. A fact that a payload does not state is unknown, and none is guessed: from a name it is read only where the provider
documents its names. Local disk is in GB (10^9 bytes), on the host and included in the price; network is in Mbit/s that the
machine may send.`;

const ABSENT = `### Providers without an adapter

| provider | why |
|---|---|
| IONOS Cloud | prices are those of one contract (\`/billing/{contract}/products\`), and no public document says which meter prices which template |
| Alibaba Cloud, Tencent Cloud | prices come from APIs alone whose every request is signed |

A list of their machines with prices can be read as a [price-list](#price-list).`;

/** The page of the documentation that tells of every adapter, from what they say of themselves. Pure. */
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
      adapter.provider ? `${adapter.provider.name} (id ${adapter.provider.id})` : 'as the source says',
      CREDENTIALS[adapter.credentials],
      memoryOf(adapter),
      adapter.currency ?? adapter.currencyFrom,
      FACT_FIELDS.filter((fact) => adapter.facts?.includes(fact))
        .map((fact) => FACT_NAMES[fact])
        .join(', '),
      `\`${adapter.schedule}\``,
    ]),
  );
  return table(['adapter', 'provider', 'credentials', 'memory', 'currency', 'facts', 'schedule'], rows);
}

/** The sentence that names the adapters without facts; empty where each has some. */
function factless(catalogues: readonly AnyCatalogueAdapter[]): string {
  const names = catalogues.filter(({ facts = [] }) => facts.length === 0).map(({ id }) => `[${id}](#${id})`);
  return names.length === 0 ? '' : ` These adapters state no fact: ${names.join(', ')}.`;
}

function section(adapter: AnyCatalogueAdapter): string {
  const variables = [
    row([`\`${environmentKey(adapter.id, 'url')}\``, ...addressOf(adapter)]),
    ...credentialRows(adapter),
    row([`\`${environmentKey(adapter.id, 'schedule')}\``, 'when it is read', `\`${adapter.schedule}\``]),
    row([
      `\`${environmentKey(adapter.id, 'maxAge')}\``,
      'seconds that its data may be old',
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

/** What the URL is, and which one it is by default. */
function addressOf(adapter: AnyCatalogueAdapter): [string, string] {
  if (adapter.provider) return ['where the API is', adapter.baseUrl];
  return [adapter.readsFiles ? 'URL, or path on this machine' : 'where the API is', 'must be given'];
}

function memoryOf({ memoryUnit }: AnyCatalogueAdapter): string {
  return memoryUnit === undefined ? 'as each row says' : MEMORY[memoryUnit];
}
