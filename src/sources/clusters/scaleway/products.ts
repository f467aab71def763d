/** The managed databases of Scaleway: where each product lists them, and what it says of one. */
import { z } from 'zod';
import type { DescribedDisk } from '../../../domain/cluster.ts';
import { instant } from '../../cluster-fields.ts';
import { count, countOrNone, label, quantity } from '../../schema/fields.ts';

/** What a cluster has besides what all products say. */
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
  /** Absent where nothing is said of disks. */
  readonly disks?: readonly DescribedDisk[];
}

/** The shape of a type of node. Memory is in powers of two. */
export interface NodeType {
  readonly cpu: number;
  readonly bytes: number;
}

/** One page of a list. */
export interface Rows {
  readonly rows: readonly unknown[];
  readonly total: number;
}

export interface Product {
  /** The option that says where it is read. */
  readonly id: 'rdb' | 'mongodb' | 'redis';
  /** In braces: a region, or a zone. */
  readonly instances: string;
  readonly nodeTypes: string;
  /** Asks for types that cannot be ordered any more too: instances keep them. */
  readonly allTypes: Readonly<Record<string, string>>;
  readonly InstancePage: z.ZodType<Rows>;
  readonly Instance: z.ZodType<Instance>;
  readonly NodeType: z.ZodType<NodeType>;
}

const total_count = countOrNone;

const InstancePage = z
  .object({ instances: z.array(z.unknown()), total_count })
  .transform(({ instances, total_count: total }): Rows => ({ rows: instances, total }));

const ClusterPage = z
  .object({ clusters: z.array(z.unknown()), total_count })
  .transform(({ clusters, total_count: total }): Rows => ({ rows: clusters, total }));

export const NodeTypePage = z
  .object({ node_types: z.array(z.unknown()), total_count })
  .transform(({ node_types, total_count: total }): Rows => ({ rows: node_types, total }));

/** What every product says. */
const Common = {
  id: label,
  name: label,
  status: label,
  node_type: label,
  created_at: instant,
  project_id: label,
};

/** Sizes of volumes are in powers of ten. */
function disksOf(volume: { type: string; bytes: number } | undefined): Pick<Instance, 'disks'> {
  if (volume === undefined) return {};
  return { disks: [{ type: { name: volume.type }, size: volume.bytes / 1e9, unit: 'GB' }] };
}

const nodeType = z
  .object({ vcpus: count, memory: quantity })
  .transform(({ vcpus, memory }): NodeType => ({ cpu: vcpus, bytes: memory }));

/** `Instance` of scaleway-sdk-go, api/rdb/v1. */
const RelationalInstance = z
  .object({
    ...Common,
    region: label,
    is_ha_cluster: z.boolean({ error: 'must be true or false' }),
    read_replicas: z.array(z.unknown()).nullish(),
    volume: z
      .object({ type: label, size: quantity })
      .transform(({ type, size: bytes }) => ({ type, bytes }))
      .nullish(),
  })
  .transform(({ region, is_ha_cluster, read_replicas, volume, ...instance }): Instance => {
    const replicas = (is_ha_cluster ? 2 : 1) + (read_replicas ?? []).length;
    return { ...instance, place: region, shards: 1, replicas, ...disksOf(volume ?? undefined) };
  });

/** `Instance` of scaleway-sdk-go, api/mongodb/v1. */
const DocumentInstance = z
  .object({
    ...Common,
    region: label,
    node_amount: count,
    volume: z
      .object({ type: label, size_bytes: quantity })
      .transform(({ type, size_bytes: bytes }) => ({ type, bytes }))
      .nullish(),
  })
  .transform(({ region, node_amount, volume, ...instance }): Instance => {
    return { ...instance, place: region, shards: 1, replicas: node_amount, ...disksOf(volume ?? undefined) };
  });

/** From so many nodes on, Redis splits its keys among them. */
const CLUSTER_MODE = 3;

/** `Cluster` of scaleway-sdk-go, api/redis/v1. Its data is in memory. */
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
    InstancePage: ClusterPage,
    Instance: RedisCluster,
    NodeType: nodeType,
  },
];
