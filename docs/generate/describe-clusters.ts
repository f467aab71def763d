import type { ClusterAdapter } from '../../src/sources/source.ts';
import { CREDENTIALS, optionRows, row, table } from './markdown.ts';

const CONFIGURATION = `Sources of clusters are entries of \`clusters\` in the file that \`FLEETBOOK_CONFIG\` names. A single JSON feed needs
only \`CLUSTERS_URL\`. An entry has \`id\`, \`adapter\`, \`url\`, \`schedule\`, \`maxAge\`, \`options\`, \`limits\` and [credentials](#credentials), like
an entry of \`catalogues\`. Control planes do not state everything that a cluster needs: its organization, its machine, the price of its disks. These
settings add the missing values:

| setting | meaning |
|---|---|
| \`organization\` | slug of the organization of every cluster of the source |
| \`organizations\` | instead of \`organization\`: \`{"tenant": "slug"}\`; the adapter's section defines its tenants. Clusters of other tenants wait in quarantine |
| \`tenantIsOrganization\` | \`true\`: a tenant that is not in \`organizations\` is a slug |
| \`defaults\` | for clusters without the value: \`provider\` (name), \`region\` (\`code\`, \`name\`), \`machine\`, \`user\` (\`first_name\`, \`last_name\`), \`disks\` (a list of \`type\`, \`size\`, \`unit\`, \`autoscaling\`) |
| \`providers\` | \`{"as the source spells it": "name of the provider"}\` |
| \`regions\` | \`{"the source's code": {"code": …, "name": …}}\`; without a name, the code is the name |
| \`machines\` | \`{"instance type, plan or label": machine}\` |
| \`diskTypes\` | \`{"storage class": {"name": …, "price": {"amount": …, "per": …, "currency": …}, "unit": …}}\`; \`"*"\` covers all others. \`per\` is \`minute\`, \`hour\` or \`month\`, \`unit\` is \`Binary\` or \`Decimal\` |

A *machine* is the name of a machine type, or a shape: \`cpu\`, \`ram\`, \`ram_unit\` (\`Binary\` or \`Decimal\`) and an optional \`name\`. A name
refers to the catalogue of the cluster's provider and region. A shape is the cheapest machine of this shape there. If there is none, the cluster gets a
machine that \`/v1/machines\` does not list. Names are case-sensitive, except those of providers. Values of the cluster itself have priority over
defaults, and so has the price of a disk type.

Fleetbook invents no value. A cluster waits in *quarantine* if its organization, provider, region or machine is unknown, if its machine has only a name
that no catalogue has, or if a disk has no price. Its last good values stay. The reason names the setting that helps. The cluster leaves quarantine
when the setting, the organization or the catalogue exists. A missing creator becomes two empty names, and missing disks an empty list. Prices in other
currencies are converted like those of machines.

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

With this entry, a CloudNativePG cluster in the namespace \`team-orders\`, on nodes with the label \`db-small\` and the storage class \`gp3\`, belongs to
the organization \`orders\`. It runs on an \`r5.large\` of AWS in \`us-east-1\`, and its disk costs 0.08 USD a month for each GiB. A cluster in the
namespace \`team-lab\` waits in quarantine until \`organizations\` has its namespace.

A *watched* source is read after each change, by one worker at a time. Another worker takes over within seconds when that one ends. A change is
readable within two seconds. A cluster that is missing from a watched state was deleted and goes at once. In a *polled* source, a cluster goes after the
third read without it. In both cases a run that removes more than the guard allows is held. The schedule of a watched source finds missed changes. A
failed watch begins again after a pause of up to a minute, or of the length that its upstream requests; \`fleetbook status\` shows it.`;

/** Returns the sections about clusters of the page about adapters. */
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
      adapter.readsFiles ? 'URL, or path on this machine' : 'address of the API',
      adapter.baseUrl ?? 'required',
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
    ...(adapter.example === undefined ? [] : [exampleOf(adapter.id, adapter.example)]),
  ].join('\n\n');
}

/** Returns a configuration with one entry. */
function exampleOf(adapter: string, fields: NonNullable<ClusterAdapter['example']>): string {
  const id = `${adapter}-databases`;
  const credentials =
    'credentials' in fields ? {} : { tokenEnv: `${id.toUpperCase().replaceAll('-', '_')}_TOKEN` };
  const entry = { id, adapter, ...credentials, ...fields };
  const text = `{\n  "clusters": [\n    ${jsonOf(entry, '    ')}\n  ]\n}`;
  return `\`\`\`json\n${text}\n\`\`\``;
}

/** Returns JSON with one line for each field, unless the whole is short. */
function jsonOf(value: object | string, indent: string): string {
  const line = JSON.stringify(value, null, 1).replaceAll(/\n */g, ' ');
  if (typeof value === 'string' || line.length < 110) return line;
  const fields = Object.entries(value).map(
    ([name, field]) => `${indent}  ${JSON.stringify(name)}: ${jsonOf(field, `${indent}  `)}`,
  );
  return `{\n${fields.join(',\n')}\n${indent}}`;
}

const tokenOf = ({ credentials }: ClusterAdapter) => `name of the variable with ${CREDENTIALS[credentials]}`;
const scheduleOf = ({ watch }: ClusterAdapter) =>
  watch === undefined ? 'schedule' : 'schedule of additional reads';
