/** What costs need of the clusters of an organization. */
import type { ClusterDocument } from '../../domain/cluster.ts';
import { type Amount, clusterCost } from '../../market/market.ts';
import type { Document } from '../../snapshot/document/document.ts';

export type Where = Pick<ClusterDocument, 'provider' | 'region'>;

/** Clusters of one region share `where`. */
export interface CostedCluster {
  readonly slug: string;
  readonly name: string;
  readonly where: Where;
  readonly machineId: number;
  readonly nodes: number;
  /** Of its disks. */
  readonly disks: Amount;
  readonly knowsDisks: boolean;
}

/** The clusters of one document. */
export interface CostedClusters {
  readonly document: Document | undefined;
  readonly clusters: readonly CostedCluster[];
  /** Start and end of each cluster in the document's body. */
  readonly places: Uint32Array;
  readonly machines: ReadonlySet<number>;
}

export const NO_CLUSTERS: CostedClusters = {
  document: undefined,
  clusters: [],
  places: new Uint32Array(),
  machines: new Set(),
};

/** Parses the clusters whose bytes differ from the document before, and shares the others with it. */
export function costedClusters(document: Document, before: CostedClusters): CostedClusters {
  const body = document.body.identity;
  const entries = document.places();
  const places = new Uint32Array(2 * entries.length);
  const known = knownClusters(before, body);
  const make = clusterMaker(before.clusters);
  const clusters = entries.map(([slug, [start, end]], i) => {
    places[2 * i] = start;
    places[2 * i + 1] = end;
    return known(slug, start, end) ?? make(JSON.parse(body.toString('utf8', start, end)));
  });
  const machines = new Set(clusters.map(({ machineId }) => machineId));
  const hasSameMachines = machines.size === before.machines.size && machines.isSubsetOf(before.machines);
  return { document, clusters, places, machines: hasSameMachines ? before.machines : machines };
}

function knownClusters({ document, clusters, places }: CostedClusters, body: Buffer) {
  const bodyBefore = document?.body.identity;
  const positions = new Map(clusters.map(({ slug }, i) => [slug, i]));
  return (slug: string, start: number, end: number): CostedCluster | undefined => {
    const i = positions.get(slug);
    if (i === undefined || !bodyBefore) return undefined;
    const difference = body.compare(bodyBefore, places[2 * i], places[2 * i + 1], start, end);
    return difference === 0 ? clusters[i] : undefined;
  };
}

function clusterMaker(before: readonly CostedCluster[]): (document: ClusterDocument) => CostedCluster {
  const wheres = new Map<string, Where>();
  const ofDisks = new Map<string, Pick<CostedCluster, 'disks' | 'knowsDisks'>>();
  for (const where of new Set(before.map((cluster) => cluster.where))) wheres.set(textOf(where), where);
  return ({ slug, name, provider, region, machine, shards, replicas, disks }) => {
    const place = textOf({ provider, region });
    const where = wheres.get(place) ?? { provider, region };
    wheres.set(place, where);
    const key = JSON.stringify([shards, replicas, disks]);
    const known = ofDisks.get(key) ?? disksOf({ shards, replicas, disks });
    ofDisks.set(key, known);
    return { slug, name, where, machineId: machine.id, nodes: shards * replicas, ...known };
  };
}

const textOf = ({ provider, region }: Where): string => JSON.stringify([provider, region]);

function disksOf(cluster: Parameters<typeof clusterCost>[0]): Pick<CostedCluster, 'disks' | 'knowsDisks'> {
  const { known, disks } = clusterCost(cluster, null);
  return { disks: known, knowsDisks: disks.every((part) => part !== null) };
}
