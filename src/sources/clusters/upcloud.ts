import { z } from 'zod';
import type { DescribedCluster } from '../../domain/cluster.ts';
import { instant } from '../cluster-fields.ts';
import { countedRows, countIn } from '../http/counted-rows.ts';
import { count, countOrNone, label, quantity } from '../schema/fields.ts';
import { listedNames, nameList } from '../schema/name-list.ts';
import { labelIn, readRow, rejectedRow } from '../schema/rows.ts';
import type { ClusterAdapter, ClusterItem, SourceHttp } from '../source.ts';

const DATABASES = '/1.3/database';

/** The largest page; without a `limit` the API gives ten rows. */
const PER_PAGE = 100;

const TYPES = 'mysql,opensearch,pg,redis,valkey';

/** The states that the contract has a word for. UpCloud's others do not tell a new service from one that is moved. */
const STATUS: ReadonlyMap<string, string> = new Map([
  ['running', 'Active'],
  ['poweroff', 'Stopped'],
]);

const Options = z.strictObject({
  types: nameList
    .default(TYPES)
    .describe(`the types of service that are read, separated by commas; \`${TYPES}\` when absent`),
  organizationLabel: label
    .optional()
    .describe(
      "key of the label of a service whose value says whose it is, for the source's `organizations`; without it services have no tenant",
    ),
});

const Databases = z.array(z.unknown());
const Kind = z.object({ type: label });

/**
 * `ManagedDatabase` of UpCloud's own client, https://github.com/UpCloudLtd/upcloud-go-api/blob/main/upcloud/managed_database.go,
 * and the answers recorded there in upcloud/service/fixtures; `plan_components` as in UpCloudLtd/upcloud-cli.
 */
const Database = z.object({
  uuid: label,
  /** What the host name begins with. */
  name: label,
  title: z.union([z.literal(''), label]).nullish(),
  state: label,
  node_count: count,
  plan: label,
  zone: label,
  create_time: instant,
  additional_disk_space_gib: countOrNone.nullish(),
  /** Of services whose plan is put together from parts. */
  plan_components: z
    .object({
      compute: z.object({ name: label, cpu: count, memory_gb: quantity }),
      storage: z.object({ total_gib: quantity }).nullish(),
    })
    .nullish(),
  labels: z.array(z.object({ key: z.string(), value: z.string() })).nullish(),
});
type Database = z.infer<typeof Database>;

/** The databases that UpCloud runs for its customers. */
export const adapter: ClusterAdapter = {
  id: 'upcloud',
  options: Options,
  baseUrl: 'https://api.upcloud.com',
  endpoints: [DATABASES],
  readsFiles: false,
  credentials: 'basic-or-bearer',
  schedule: '1-56/5 * * * *',
  notes: `The token is an API token (\`ucat_…\`), or \`user:password\` of a subaccount that may use the API and see managed databases.
An account has no projects: name the source's \`organization\`, or the label that tells organizations apart in the
option \`organizationLabel\`. The answers hold passwords (\`service_uri\`); none is kept or logged. An entry for two teams,
whose services are labelled \`team=shop\` and \`team=lab\`:

\`\`\`json
{
  "clusters": [
    {
      "id": "databases",
      "adapter": "upcloud",
      "tokenEnv": "UPCLOUD_DATABASES_TOKEN",
      "options": { "organizationLabel": "team" },
      "organizations": { "shop": "acme", "lab": "acme-lab" },
      "diskTypes": {
        "*": { "name": "storage", "price": { "amount": "0.2", "per": "month", "currency": "EUR" }, "unit": "Binary" }
      }
    }
  ]
}
\`\`\`

| of UpCloud | becomes |
|---|---|
| \`uuid\` | what identifies the cluster |
| \`title\`, else \`name\` | its name |
| \`state\` | \`running\` is \`Active\`, \`poweroff\` is \`Stopped\`; others, such as \`pending\`, \`setup-network\` and \`rebuilding\`, stay as they are |
| \`node_count\` | the replicas, of 1 shard |
| \`plan_components.compute\`, else \`plan\` | the machine's name, and its shape, which of older plans only the name states: \`2x4xCPU-8GB-100GB\` are 2 nodes with 4 CPUs, 8 GiB and 100 GiB of disk each. A plan of another form is a name alone: say its shape in the source's \`machines\` |
| \`plan_components.storage\`, else \`plan\` with \`additional_disk_space_gib\` | one disk of so many GiB, of which the API says no more: name, unit and price are those of \`*\` in the source's \`diskTypes\`. Where none of them states a size, nothing is said of disks |
| \`zone\` | the region's code, of the provider UpCloud |
| (nothing) | who made it: the source's \`defaults\` may say a \`user\` |`,

  async *clusters({ http, options }) {
    const { types, organizationLabel } = Options.parse(options ?? {});
    const wanted = listedNames(types);
    let index = 0;
    for await (const row of rowsOf(http)) {
      index += 1;
      const item = itemOf(row, index, wanted, organizationLabel);
      if (item !== undefined) yield item;
    }
  },
};

function rowsOf(http: SourceHttp): AsyncGenerator<unknown, void> {
  return countedRows(DATABASES, PER_PAGE, async ({ offset }) => {
    const query = { limit: PER_PAGE, offset };
    const { data: rows, headers } = await http.json(DATABASES, Databases, { query });
    return { rows, total: countIn(headers, 'upcloud-total-count', DATABASES) };
  });
}

/** Undefined for a service that is no cluster. */
function itemOf(
  row: unknown,
  index: number,
  wanted: ReadonlySet<string>,
  organizationLabel: string | undefined,
): ClusterItem | undefined {
  const key = labelIn(row, 'uuid') ?? labelIn(row, 'name') ?? `database ${index}`;
  const kind = readRow(Kind, row);
  if (kind.value === undefined) return rejectedRow(key, kind.reason, {});
  if (!wanted.has(kind.value.type)) return undefined;
  const { value, reason } = readRow(Database, row);
  if (value === undefined) return rejectedRow(key, reason, {});
  return { kind: 'cluster', cluster: described(value, organizationLabel) };
}

function described(database: Database, organizationLabel: string | undefined): DescribedCluster {
  const { uuid, name, title, state, node_count, zone, create_time, labels } = database;
  const tenant = labels?.find(({ key }) => key === organizationLabel)?.value;
  return {
    ...(tenant === undefined || tenant === '' ? {} : { tenant }),
    key: uuid,
    name: title || name,
    provider: 'UpCloud',
    region: { code: zone },
    status: STATUS.get(state) ?? state,
    shards: 1,
    replicas: node_count,
    ...hardwareOf(database),
    createdAt: create_time,
  };
}

/** `2x4xCPU-8GB-100GB`, with or without a disk or another part behind: nodes, CPUs, memory and disk of each. */
const PLAN =
  /^[1-9]\d{0,2}x(?<cpu>[1-9]\d{0,2})xCPU-(?<ram>[1-9]\d{0,4})GB(?:-(?<disk>[1-9]\d{0,6})GB)?(?:-|$)/;

/** "GB" are GiB: the plan 2x4xCPU-8GB-100GB has 8192 and 102400 MiB in the API's list of plans. */
function hardwareOf({
  plan,
  plan_components: components,
  additional_disk_space_gib: additional,
}: Database): Pick<DescribedCluster, 'machine' | 'disks'> {
  if (components != null) {
    const { compute, storage } = components;
    const { name, cpu, memory_gb: gib } = compute;
    const machine = { name, cpu, ram: Math.ceil(gib), ramUnit: 'Binary' } as const;
    return { machine, ...disksOf(storage?.total_gib) };
  }
  const { cpu, ram, disk } = PLAN.exec(plan)?.groups ?? {};
  if (cpu === undefined || ram === undefined) return { machine: { name: plan } };
  const machine = { name: plan, cpu: Number(cpu), ram: Number(ram), ramUnit: 'Binary' } as const;
  return { machine, ...disksOf(disk === undefined ? undefined : Number(disk) + (additional ?? 0)) };
}

function disksOf(gib: number | undefined): Pick<DescribedCluster, 'disks'> {
  return gib === undefined ? {} : { disks: [{ type: {}, size: gib, unit: 'GiB' }] };
}
