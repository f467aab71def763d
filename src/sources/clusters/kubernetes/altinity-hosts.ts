/**
 * The templates of the hosts of a ClickHouseInstallation, resolved as by Altinity's operator (`pkg/model/chi/normalizer`): a host
 * inherits from its shard (from its replica if only replicas are listed), then the cluster, then the installation.
 */
import { z } from 'zod';
import { countOrNone, label } from '../../schema/fields.ts';

const Names = z.object({
  hostTemplate: z.string().nullish(),
  podTemplate: z.string().nullish(),
  dataVolumeClaimTemplate: z.string().nullish(),
  logVolumeClaimTemplate: z.string().nullish(),
  /** The data's template in older manifests. */
  volumeClaimTemplate: z.string().nullish(),
});
const NAMES = Names.keyof().options;
export const TemplateNames = Names.nullish();
export type TemplateNames = z.infer<typeof Names>;

const Host = z.object({ templates: TemplateNames }).nullish();
const Counts = { shardsCount: countOrNone.nullish(), replicasCount: countOrNone.nullish() };
const Part = { ...Counts, templates: TemplateNames };

const Layout = z
  .object({
    ...Counts,
    shards: z.array(z.object({ ...Part, replicas: z.array(Host).nullish() })).nullish(),
    replicas: z.array(z.object({ ...Part, shards: z.array(Host).nullish() })).nullish(),
  })
  .nullish();

export const ChCluster = z.object({ name: label, templates: TemplateNames, layout: Layout });
export type ChCluster = z.infer<typeof ChCluster>;

/** Does not read `.status.replicas`: the operator leaves it 0. */
export function shapeOf({ layout }: ChCluster): { readonly shards: number; readonly replicas: number } {
  const shards = layout?.shards ?? [];
  // Like the operator, this ignores replicas if shards are listed.
  const replicas = shards.length > 0 ? [] : (layout?.replicas ?? []);
  return {
    shards: Math.max(
      1,
      layout?.shardsCount ?? 0,
      shards.length,
      ...replicas.map((replica) => Math.max(replica.shardsCount ?? 0, replica.shards?.length ?? 0)),
    ),
    replicas: Math.max(
      1,
      layout?.replicasCount ?? 0,
      replicas.length,
      ...shards.map((shard) => Math.max(shard.replicasCount ?? 0, shard.replicas?.length ?? 0)),
    ),
  };
}

export interface Hosts {
  readonly templates: TemplateNames;
  readonly count: number;
}

export function hostsOf(
  cluster: ChCluster,
  defaults: z.infer<typeof TemplateNames>,
  hostTemplates: ReadonlyMap<string, z.infer<typeof TemplateNames>>,
): readonly Hosts[] {
  const { layout } = cluster;
  const [shards, replicas] = [layout?.shards ?? [], layout?.replicas ?? []];
  const shape = shapeOf(cluster);
  const own = filled(cluster.templates, filled(defaults, undefined));
  const byShard = shards.length > 0 || replicas.length === 0;
  const listedShards = Math.max(shards.length, ...replicas.map((replica) => replica.shards?.length ?? 0));
  const listedReplicas = Math.max(replicas.length, ...shards.map((shard) => shard.replicas?.length ?? 0));
  const found = new Map<string, Hosts>();
  for (const [s, alikeShards] of rows(shape.shards, listedShards)) {
    const shard = shards[s];
    const replicasOfShard = shard?.replicasCount || shard?.replicas?.length || shape.replicas;
    for (const [r, alike] of rows(replicasOfShard, listedReplicas)) {
      const parent = byShard ? shard?.templates : replicas[r]?.templates;
      const itself = filled(shard?.replicas?.[r]?.templates, replicas[r]?.shards?.[s]?.templates);
      const inherited = filled(itself, filled(parent, own));
      const templates = filled(inherited, hostTemplates.get(inherited.hostTemplate ?? ''));
      const key = JSON.stringify(NAMES.map((name) => templates[name]));
      const count = alikeShards * alike + (found.get(key)?.count ?? 0);
      found.set(key, { templates, count });
    }
  }
  return [...found.values()];
}

function* rows(total: number, listed: number): Generator<readonly [index: number, alike: number]> {
  for (let index = 0; index < Math.min(total, listed); index++) yield [index, 1];
  if (total > listed) yield [listed, total - listed];
}

/** Like the operator, this ignores empty names, and reads the older name of the data's template after the newer one. */
function filled(own: z.infer<typeof TemplateNames>, from: z.infer<typeof TemplateNames>): TemplateNames {
  const names: TemplateNames = {};
  for (const name of NAMES) {
    const named = own?.[name] || from?.[name];
    if (named) names[name] = named;
  }
  const data = names.dataVolumeClaimTemplate ?? names.volumeClaimTemplate;
  return data === undefined ? names : { ...names, dataVolumeClaimTemplate: data };
}
