import { z } from 'zod';
import type { DescribedDisk } from '../../../domain/cluster.ts';
import { instant } from '../../cluster-fields.ts';
import type { ListPage } from '../../http/listing.ts';
import { pageOf } from '../../http/listing.ts';
import { count, countOrNone, label, quantity } from '../../schema/fields.ts';

export interface Instance {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly node_type: string;
  readonly created_at: string;
  readonly project_id: string;
  readonly place: string;
  readonly shards: number;
  readonly replicas: number;
  readonly disks?: readonly DescribedDisk[] | undefined;
}

export interface NodeType {
  readonly cpu: number;
  readonly bytes: number;
}

/** A managed database product of Scaleway. */
export interface Product {
  readonly id: 'rdb' | 'mongodb' | 'redis';
  readonly instances: string;
  readonly nodeTypes: string;
  /** Requests also the types that are no longer sold: instances keep them. */
  readonly allTypes: Readonly<Record<string, string>>;
  readonly InstancePage: z.ZodType<ListPage<unknown>>;
  readonly Instance: z.ZodType<Instance>;
  readonly NodeType: z.ZodType<NodeType>;
}

const countedPage = (field: string) =>
  pageOf(field, { total_count: countOrNone }).transform(({ rows, total_count: total }) => ({ rows, total }));

const InstancePage = countedPage('instances');
export const NodeTypePage = countedPage('node_types');

const Common = {
  id: label,
  name: label,
  status: label,
  node_type: label,
  created_at: instant,
  project_id: label,
};

/** The disks of a volume, whose size is in powers of ten. */
const volume = (sizeField: string) =>
  z
    .object({ type: label, [sizeField]: quantity })
    .transform((found): DescribedDisk[] => {
      return [{ type: { name: String(found.type) }, size: Number(found[sizeField]) / 1e9, unit: 'GB' }];
    })
    .nullish()
    .transform((disks) => disks ?? undefined);

const nodeType = z
  .object({ vcpus: count, memory: quantity })
  .transform(({ vcpus, memory }): NodeType => ({ cpu: vcpus, bytes: memory }));

/** `Instance` in scaleway-sdk-go, api/rdb/v1. */
const RelationalInstance = z
  .object({
    ...Common,
    region: label,
    is_ha_cluster: z.boolean({ error: 'must be true or false' }),
    read_replicas: z.array(z.unknown()).nullish(),
    volume: volume('size'),
  })
  .transform(({ region, is_ha_cluster, read_replicas, volume: disks, ...instance }): Instance => {
    const replicas = (is_ha_cluster ? 2 : 1) + (read_replicas ?? []).length;
    return { ...instance, place: region, shards: 1, replicas, disks };
  });

/** `Instance` in scaleway-sdk-go, api/mongodb/v1. */
const DocumentInstance = z
  .object({ ...Common, region: label, node_amount: count, volume: volume('size_bytes') })
  .transform(({ region, node_amount, volume: disks, ...instance }): Instance => {
    return { ...instance, place: region, shards: 1, replicas: node_amount, disks };
  });

/** With this many nodes or more, Redis splits its keys among them. */
const CLUSTER_MODE = 3;

/** `Cluster` in scaleway-sdk-go, api/redis/v1. Its data is in memory. */
const RedisCluster = z
  .object({ ...Common, zone: label, cluster_size: count })
  .transform(({ zone, cluster_size: nodes, ...cluster }): Instance => {
    const split = nodes >= CLUSTER_MODE;
    return { ...cluster, place: zone, shards: split ? nodes : 1, replicas: split ? 1 : nodes, disks: [] };
  });

export const PRODUCTS: readonly Product[] = [
  {
    id: 'rdb',
    instances: '/rdb/v1/regions/{region}/instances',
    nodeTypes: '/rdb/v1/regions/{region}/node-types',
    allTypes: { include_disabled_types: 'true' },
    InstancePage,
    Instance: RelationalInstance,
    NodeType: nodeType,
  },
  {
    id: 'mongodb',
    instances: '/mongodb/v1/regions/{region}/instances',
    nodeTypes: '/mongodb/v1/regions/{region}/node-types',
    allTypes: { include_disabled: 'true' },
    InstancePage,
    Instance: DocumentInstance,
    NodeType: z
      .object({ vcpus: count, memory_bytes: quantity })
      .transform(({ vcpus, memory_bytes }): NodeType => ({ cpu: vcpus, bytes: memory_bytes })),
  },
  {
    id: 'redis',
    instances: '/redis/v1/zones/{zone}/clusters',
    nodeTypes: '/redis/v1/zones/{zone}/node-types',
    allTypes: { include_disabled_types: 'true' },
    InstancePage: countedPage('clusters'),
    Instance: RedisCluster,
    NodeType: nodeType,
  },
];
