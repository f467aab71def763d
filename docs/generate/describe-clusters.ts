import type { ClusterAdapter } from '../../src/sources/source.ts';
import { CREDENTIALS, optionRows, row, table } from './markdown.ts';

const CONFIGURATION = `Sources of clusters are entries of \`clusters\` in the file that \`FLEETBOOK_CONFIG\` names; a single JSON feed needs no
more than \`CLUSTERS_URL\`. An entry has \`id\`, \`adapter\`, \`url\`, \`schedule\`, \`maxAge\`, \`options\`, \`limits\` and its
[credentials](#credentials) as one of \`catalogues\` has. Control planes do not say everything that a reader is told: whose a cluster is, on which machine it
runs, what its disks cost. The entry says it.

| setting | what it says |
|---|---|
| \`organization\` | slug of the organization that every cluster of the source belongs to |
| \`organizations\` | in its place: \`{"tenant": "slug"}\`, a tenant being what the adapter's page says. Clusters of others wait in quarantine |
| \`tenantIsOrganization\` | \`true\`: a tenant that \`organizations\` does not list is a slug itself |
| \`defaults\` | for clusters that do not say it themselves: \`provider\` (name), \`region\` (\`code\`, \`name\`), \`machine\`, \`user\` (\`first_name\`, \`last_name\`), \`disks\` (a list of \`type\`, \`size\`, \`unit\`, \`autoscaling\`) |
| \`providers\` | \`{"as the source spells it": "name of the provider"}\` |
| \`regions\` | \`{"the source's code": {"code": …, "name": …}}\`; without a name, the code is the name |
| \`machines\` | \`{"instance type, plan or label": machine}\` |
| \`diskTypes\` | \`{"storage class": {"name": …, "price": {"amount": …, "per": …, "currency": …}, "unit": …}}\`; \`"*"\` is for those that are not listed. \`per\` is \`minute\`, \`hour\` or \`month\`, \`unit\` is \`Binary\` or \`Decimal\` |

A *machine* is the name of a machine type, or a shape: \`cpu\`, \`ram\`, \`ram_unit\` (\`Binary\` or \`Decimal\`), and a \`name\`
where there is one. A name is looked up in the catalogue of the cluster's provider and region; a shape stands for the
cheapest machine of that shape there, and where there is none for a machine of its own that \`/v1/machines\` does not
list. Names are compared as they are, those of providers without regard to upper and lower case. What a cluster says
itself stands: a default is for what it does not say, and of a disk type that has a price of its own the price stays.

Nothing is made up. A cluster whose organization, provider, region or machine nobody says, whose machine has only a name
that no catalogue knows, or a disk of which has no price, waits in *quarantine* with the setting that would help; its
last good values stay, and it comes out by itself when the setting, the organization or the catalogue is there. Only a
creator whom nobody names is two empty names, and disks that nobody names are none. Prices in other currencies are
converted as those of machines are.

\`\`\`json
{
  "clusters": [
    {
      "id": "production",
      "adapter": "kubernetes",
      "url": "/etc/fleetbook/kubeconfig",
      "options": { "context": "production" },
      "organizations": { "team-orders": "orders", "team-search": "search" },
      "defaults": {
        "provider": "AWS",
        "region": { "code": "us-east-1", "name": "US East (N. Virginia)" },
        "machine": "m5.large"
      },
      "machines": { "db-small": "r5.large", "bare-metal": { "cpu": 32, "ram": 256, "ram_unit": "Binary" } },
      "diskTypes": {
        "gp3": { "name": "gp3", "price": { "amount": "0.08", "per": "month", "currency": "USD" }, "unit": "Binary" },
        "*": { "price": { "amount": "0.10", "per": "month", "currency": "USD" }, "unit": "Binary" }
      }
    }
  ]
}
\`\`\`

There a CloudNativePG cluster in the namespace \`team-orders\`, on nodes labelled \`db-small\` and on volumes of the storage
class \`gp3\`, is one of the organization \`orders\` on an \`r5.large\` of AWS in \`us-east-1\`, with a disk at 0.08 USD a month
for each GiB; one in the namespace \`team-lab\` waits in quarantine until \`organizations\` names it.

A *watched* source is read as soon as something changes in it, by one worker at a time; another one takes over within
seconds when that one ends. A change is readable within two seconds. What is missing from what a watch says has been
deleted and goes at once, while of a *polled* source a cluster goes with the third reading without it; either way a
reading that would lose more than the guard allows is held for an operator. The schedule of a watched source makes sure
that nothing was missed. A watch that fails is begun again after a pause that grows up to a minute, or as long as its
upstream asks, and \`fleetbook status\` tells of it.`;

/** The part of the page on adapters that tells of clusters. Pure. */
export function clusterSections(adapters: readonly ClusterAdapter[]): string[] {
  const rows = adapters.map((adapter) =>
    row([
      `[${adapter.id}](#${adapter.id}-clusters)`,
      CREDENTIALS[adapter.credentials],
      adapter.watch === undefined ? 'polled' : 'watched',
      `\`${adapter.schedule}\``,
    ]),
  );
  return [
    CONFIGURATION,
    table(['adapter', 'credentials', 'read', 'schedule'], rows),
    ...adapters.map(sectionOf),
  ];
}

function sectionOf(adapter: ClusterAdapter): string {
  const endpoints = adapter.endpoints.map((endpoint) => `\`${endpoint}\``).join(', ');
  const settings = [
    row([
      '`url`',
      adapter.readsFiles ? 'URL, or path on this machine' : 'where the API is',
      adapter.baseUrl ?? 'must be given',
    ]),
    ...(adapter.credentials === 'none' ? [] : [row(['`tokenEnv`', tokenOf(adapter), ''])]),
    row(['`schedule`', scheduleOf(adapter), `\`${adapter.schedule}\``]),
    ...optionRows(adapter.options, (name) => `\`options.${name}\``),
  ];
  return [
    `### ${adapter.id} (clusters)`,
    `Reads ${endpoints}${adapter.watch === undefined ? '' : ', and watches them'}.`,
    table(['setting', 'meaning', 'default'], settings),
    ...(adapter.notes === undefined ? [] : [adapter.notes]),
  ].join('\n\n');
}

const tokenOf = ({ credentials }: ClusterAdapter) => `the variable that holds ${CREDENTIALS[credentials]}`;
const scheduleOf = ({ watch }: ClusterAdapter) =>
  watch === undefined ? 'when it is read' : 'when it is read besides';
