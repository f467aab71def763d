import type { ReferencedObject } from '../../../src/sources/clusters/kubernetes/kind.ts';
import { KINDS } from '../../../src/sources/clusters/kubernetes/kinds.ts';
import { readSettings } from '../../../src/sources/clusters/kubernetes/options.ts';
import type { ClusterItem } from '../../../src/sources/source.ts';
import { fixture, type Json } from '../../conformance/catalogue-case.ts';
import { changed } from '../../conformance/json-changes.ts';
import type { KubernetesObject } from './fake-kubernetes.ts';

/** An Altinity installation of one cluster. */
export const CHI = fixture('kubernetes/click-house-installation.json');
/** A CloudNativePG cluster. */
export const PG = fixture('kubernetes/cloud-native-pg.json');
/** A cluster of ClickHouse's own operator. */
export const CHC = fixture('kubernetes/click-house-cluster.json');
export const CHC_UID = '4d3f0a52-7c1e-4f86-b0a9-3e5c7a9d3333';
export const CHI_UID = '0c5b8f0e-6f0b-4c1e-9d3a-2f6f1f0a1b11';
export const PG_UID = '9b1f6c64-9f6e-4b53-8c6b-5a1f8f6c2d22';

/** Reads an object through its kind, with the objects that it needs. */
export function read(
  object: unknown,
  options: Readonly<Record<string, string>> = {},
  found: readonly ReferencedObject[] = [],
): readonly ClusterItem[] {
  const kind = KINDS.find((each) => each.kind === (object as { kind?: unknown }).kind);
  if (kind === undefined) throw new Error('the object is of no kind that is read');
  const reading = kind.read(object, readSettings(options));
  if (!('needs' in reading)) return reading;
  if (reading.needs.length !== found.length) throw new Error(`it needs ${reading.needs.length} others`);
  return reading.read(found);
}

/** The same if no row may be rejected. */
export function clusters(object: unknown, options?: Readonly<Record<string, string>>) {
  return read(object, options).map((item) => {
    if (item.kind !== 'cluster') throw new Error(`rejected: ${'reason' in item ? item.reason : item.kind}`);
    return item.cluster;
  });
}

/** The same if there must be exactly one cluster. */
export function only(object: unknown, options?: Readonly<Record<string, string>>) {
  const [first, ...others] = clusters(object, options);
  if (first === undefined || others.length > 0) throw new Error(`${others.length + 1} clusters`);
  return first;
}

/** Returns the object with this value at a pointer whose last part may be missing. */
export function having(object: Json, pointer: string, value: Json): Json {
  const at = pointer.lastIndexOf('/');
  const key = pointer.slice(at + 1).replaceAll('~1', '/');
  return changed(object, pointer.slice(0, at), (holder) => ({
    ...(holder as { [key: string]: Json }),
    [key]: value,
  }));
}

/** The kinds of two operators; the others are not installed. */
export const BOTH = {
  'clickhouse.altinity.com/v1': 'clickhouseinstallations',
  'postgresql.cnpg.io/v1': 'clusters',
};

interface Differences {
  readonly namespace?: string;
  /** Number of instances, or of replicas of each shard. */
  readonly size?: number;
}

/** A ClickHouseInstallation of that name with the uid `uid-<name>`. */
export function chi(name: string, { namespace = 'acme', size = 1 }: Differences = {}): KubernetesObject {
  return {
    apiVersion: 'clickhouse.altinity.com/v1',
    kind: 'ClickHouseInstallation',
    metadata: { name, namespace, uid: `uid-${name}`, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { configuration: { clusters: [{ name: 'main', layout: { replicasCount: size } }] } },
    status: { status: 'Completed' },
  };
}

/** A CloudNativePG cluster of that name with the uid `uid-<name>`. */
export function pg(name: string, { namespace = 'acme', size = 1 }: Differences = {}): KubernetesObject {
  return {
    apiVersion: 'postgresql.cnpg.io/v1',
    kind: 'Cluster',
    metadata: { name, namespace, uid: `uid-${name}`, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { instances: size, storage: { size: '10Gi' } },
  };
}
