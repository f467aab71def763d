import { z } from 'zod';
import type { DescribedCluster, DescribedDisk } from '../../../domain/cluster.ts';
import { memoryOfBytes } from '../../../domain/machine.ts';
import { instant, softwareOf, softwareText } from '../../cluster-fields.ts';
import { pageOf } from '../../http/lists.ts';
import { count, countOrNone, label, quantity } from '../../schema/fields.ts';

const countedPage = (field: string) =>
  pageOf(field, { total_count: countOrNone }).transform(({ rows, total_count: total }) => ({ rows, total }));

const InstancePage = countedPage('instances');
export const NodeTypePage = countedPage('node_types');

const Common = z.object({
  id: label,
  name: label,
  status: label,
  node_type: label,
  created_at: instant,
  project_id: label,
});
export type Instance = z.infer<typeof Common> & { readonly place: string } & Pick<
    DescribedCluster,
    'shards' | 'replicas' | 'disks' | 'software'
  >;

/** The disks of a volume, whose size is in powers of ten. */
const volume = (sizeField: string) =>
  z
    .object({ type: label, [sizeField]: quantity })
    .transform((found): DescribedDisk[] => {
      return [{ type: { name: String(found.type) }, size: Number(found[sizeField]) / 1e9, unit: 'GB' }];
    })
    .nullish()
    .transform((disks) => disks ?? undefined);

const nodeType = (memoryField: string) =>
  z.object({ vcpus: count, [memoryField]: quantity }).transform((type) => {
    const { ram, ramUnit } = memoryOfBytes(type[memoryField] ?? 0);
    return { cpu: type.vcpus, ram: Math.ceil(ram), ramUnit };
  });
export type NodeType = z.infer<ReturnType<typeof nodeType>>;

/** `Instance` in scaleway-sdk-go, api/rdb/v1. */
const RelationalInstance = z
  .object({
    ...Common.shape,
    region: label,
    is_ha_cluster: z.boolean({ error: 'must be true or false' }),
    read_replicas: z.array(z.unknown()).nullish(),
    volume: volume('size'),
    engine: softwareText,
  })
  .transform(({ region, is_ha_cluster, read_replicas, volume: disks, engine, ...instance }): Instance => {
    const replicas = (is_ha_cluster ? 2 : 1) + (read_replicas ?? []).length;
    return { ...instance, place: region, shards: 1, replicas, disks, software: relational(engine) };
  });

/** `PostgreSQL-17`: engine and version in one text. */
function relational(text: string | null | undefined) {
  const { engine, version } = /^(?<engine>.+?)-(?<version>\d[^-]*)$/.exec(text ?? '')?.groups ?? {};
  return softwareOf({ engine: engine ?? text, version });
}

/** `Instance` in scaleway-sdk-go, api/mongodb/v1. */
const DocumentInstance = z
  .object({
    ...Common.shape,
    region: label,
    node_amount: count,
    volume: volume('size_bytes'),
    version: softwareText,
  })
  .transform(({ region, node_amount, volume: disks, version, ...instance }): Instance => {
    const software = softwareOf({ engine: 'mongodb', version });
    return { ...instance, place: region, shards: 1, replicas: node_amount, disks, software };
  });

/** With this many nodes or more, Redis splits its keys among them. */
const CLUSTER_MODE = 3;

/** `Cluster` in scaleway-sdk-go, api/redis/v1. Its data is in memory. */
const RedisCluster = z
  .object({ ...Common.shape, zone: label, cluster_size: count, version: softwareText })
  .transform(({ zone, cluster_size: nodes, version, ...cluster }): Instance => {
    const split = nodes >= CLUSTER_MODE;
    const software = softwareOf({ engine: 'redis', version });
    const shape = { shards: split ? nodes : 1, replicas: split ? 1 : nodes };
    return { ...cluster, place: zone, ...shape, disks: [], software };
  });

export const PRODUCTS = [
  {
    id: 'rdb',
    instances: '/rdb/v1/regions/{region}/instances',
    nodeTypes: '/rdb/v1/regions/{region}/node-types',
    // Instances have types that are no longer sold.
    allTypes: { include_disabled_types: 'true' },
    InstancePage,
    Instance: RelationalInstance,
    NodeType: nodeType('memory'),
  },
  {
    id: 'mongodb',
    instances: '/mongodb/v1/regions/{region}/instances',
    nodeTypes: '/mongodb/v1/regions/{region}/node-types',
    allTypes: { include_disabled: 'true' },
    InstancePage,
    Instance: DocumentInstance,
    NodeType: nodeType('memory_bytes'),
  },
  {
    id: 'redis',
    instances: '/redis/v1/zones/{zone}/clusters',
    nodeTypes: '/redis/v1/zones/{zone}/node-types',
    allTypes: { include_disabled_types: 'true' },
    InstancePage: countedPage('clusters'),
    Instance: RedisCluster,
    NodeType: nodeType('memory'),
  },
] as const;
export type Product = (typeof PRODUCTS)[number];
