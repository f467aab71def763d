import { z } from 'zod';
import type { DescribedCluster } from '../../domain/cluster.ts';
import { disksOfGib, instant, itemOfType, softwareOf, softwareText } from '../cluster-fields.ts';
import { countIn } from '../http/headers.ts';
import { countedRows } from '../http/lists.ts';
import { count, countOrNone, label, listedNames, nameList, quantity } from '../schema/fields.ts';
import { labelIn, parseRow } from '../schema/rows.ts';
import type { ClusterAdapter, SourceHttp } from '../source.ts';

const DATABASES = '/1.3/database';

/** The largest page; the default is ten rows. */
const LARGEST_PAGE = 100;

const TYPES = 'mysql,opensearch,pg,redis,valkey';

/** The states with a word in the contract. UpCloud's other states do not distinguish a new service from a moved one. */
const STATUS: ReadonlyMap<string, string> = new Map([
  ['running', 'Active'],
  ['poweroff', 'Stopped'],
]);

const Options = z.strictObject({
  types: nameList
    .default(TYPES)
    .describe(`the types of service to read, separated by commas; \`${TYPES}\` when absent`),
  organizationLabel: label
    .optional()
    .describe(
      "key of the label with a service's tenant, for the source's `organizations`; without it services have no tenant",
    ),
});

/** `ManagedDatabase` in https://github.com/UpCloudLtd/upcloud-go-api; `plan_components` in UpCloudLtd/upcloud-cli. */
const Database = z.object({
  uuid: label,
  name: label,
  title: z.union([z.literal(''), label]).nullish(),
  state: label,
  node_count: count,
  plan: label,
  zone: label,
  create_time: instant,
  additional_disk_space_gib: countOrNone.nullish(),
  plan_components: z
    .object({
      compute: z.object({ name: label, cpu: count, memory_gb: quantity }),
      storage: z.object({ total_gib: quantity }).nullish(),
    })
    .nullish(),
  type: softwareText,
  /** The running version, once the service runs. */
  metadata: z.record(z.string(), z.unknown()).nullish().catch(undefined),
  /** The requested version. */
  properties: z.object({ version: softwareText }).nullish().catch(undefined),
  labels: z.array(z.object({ key: z.string(), value: z.string() })).nullish(),
});
type Database = z.infer<typeof Database>;

export const adapter: ClusterAdapter = {
  id: 'upcloud',
  options: Options,
  baseUrl: 'https://api.upcloud.com',
  endpoints: [DATABASES],
  readsFiles: false,
  credentials: 'basic-or-bearer',
  schedule: '1-56/5 * * * *',
  notes: `The token is an API token (\`ucat_…\`), or \`user:password\` of a subaccount that may use the API and see managed databases.
An account has no projects: name the source's \`organization\`, or name a label in the option \`organizationLabel\`. The
answers contain passwords (\`service_uri\`), which are neither stored nor logged. The example is for two teams, whose services
have the labels \`team=shop\` and \`team=lab\`.

| of UpCloud | becomes |
|---|---|
| \`uuid\` | the cluster's key |
| \`title\`, else \`name\` | its name |
| \`state\` | \`running\` is \`Active\`, \`poweroff\` is \`Stopped\`; other states, such as \`pending\`, \`setup-network\` and \`rebuilding\`, are published unchanged |
| \`node_count\` | the replicas, of 1 shard |
| \`plan_components.compute\`, else \`plan\` | the machine's name and shape. The name of an older plan states its shape: \`2x4xCPU-8GB-100GB\` has 2 nodes with 4 CPUs, 8 GiB and 100 GiB of disk each. The source's \`machines\` must give the shape of a plan of another form |
| \`plan_components.storage\`, else \`plan\` with \`additional_disk_space_gib\` | one disk of that many GiB. Its name, unit and price come from \`*\` in the source's \`diskTypes\`. If none of them states a size, the disks are unknown |
| \`type\` | the engine; \`pg\` is \`postgresql\` |
| \`metadata.<type>_version\`, else \`properties.version\` | the version: the running one, else the requested one |
| \`zone\` | the code of a region of the provider UpCloud |
| (nothing) | the creator: the source's \`defaults\` may name a \`user\` |`,
  example: {
    options: { organizationLabel: 'team' },
    organizations: { shop: 'acme', lab: 'acme-lab' },
    diskTypes: {
      '*': { name: 'storage', price: { amount: '0.2', per: 'month', currency: 'EUR' }, unit: 'Binary' },
    },
  },

  async *clusters({ http, options }) {
    const { types, organizationLabel } = Options.parse(options ?? {});
    const wanted = listedNames(types);
    let index = 0;
    for await (const row of rowsOf(http)) {
      index += 1;
      const key = labelIn(row, 'uuid', 'name') ?? `database ${index}`;
      const read = () => described(parseRow(Database, row), organizationLabel);
      yield* itemOfType(row, key, 'type', wanted, read);
    }
  },
};

function rowsOf(http: SourceHttp): AsyncGenerator<unknown, void> {
  return countedRows(DATABASES, LARGEST_PAGE, async ({ offset }) => {
    const query = { limit: LARGEST_PAGE, offset };
    const { data: rows, headers } = await http.json(DATABASES, z.array(z.unknown()), { query });
    return { rows, total: countIn(headers, 'upcloud-total-count', DATABASES) };
  });
}

function described(database: Database, organizationLabel?: string): DescribedCluster {
  const { name, title, state } = database;
  const tenant = database.labels?.find(({ key }) => key === organizationLabel)?.value;
  return {
    tenant: tenant || undefined,
    key: database.uuid,
    name: title || name,
    provider: 'UpCloud',
    region: { code: database.zone },
    status: STATUS.get(state) ?? state,
    shards: 1,
    replicas: database.node_count,
    ...hardwareOf(database),
    software: softwareOf({ engine: database.type, version: versionOf(database) }),
    createdAt: database.create_time,
  };
}

function versionOf({ type, metadata, properties }: Database) {
  return softwareText.parse(metadata?.[`${type}_version`]) ?? properties?.version;
}

/** `2x4xCPU-8GB-100GB`: nodes, CPUs, memory and disk of each. The disk and further parts are optional. */
const PLAN =
  /^[1-9]\d{0,2}x(?<cpu>[1-9]\d{0,2})xCPU-(?<ram>[1-9]\d{0,4})GB(?:-(?<disk>[1-9]\d{0,6})GB)?(?:-|$)/;

/** "GB" means GiB: the plan 2x4xCPU-8GB-100GB has 8192 and 102400 MiB in the API's list of plans. */
function hardwareOf(database: Database): Pick<DescribedCluster, 'machine' | 'disks'> {
  const { plan, plan_components: components, additional_disk_space_gib: additional } = database;
  if (components != null) {
    const { name, cpu, memory_gb: gib } = components.compute;
    const machine = { name, cpu, ram: Math.ceil(gib), ramUnit: 'Binary' } as const;
    return { machine, disks: disksOfGib(components.storage?.total_gib) };
  }
  const { cpu, ram, disk } = PLAN.exec(plan)?.groups ?? {};
  if (cpu === undefined) return { machine: { name: plan } };
  const machine = { name: plan, cpu: Number(cpu), ram: Number(ram), ramUnit: 'Binary' } as const;
  return { machine, disks: disksOfGib(disk === undefined ? undefined : Number(disk) + (additional ?? 0)) };
}
