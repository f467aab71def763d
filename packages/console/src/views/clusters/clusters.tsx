/** Clusters of all organizations. The server searches and sorts them. */
import type {
  ClusterSort,
  ClusterTerms,
  FoundCluster,
  FoundClusters,
} from '../../../../../src/features/console/routes/answers.ts';
import { useData } from '../../lib/data.ts';
import { counted } from '../../lib/format.ts';
import { filtersOf, type Place, queryOf } from '../../lib/router.ts';
import { Ago, Badge, Progress, Title } from '../../parts/basics.tsx';
import { allOf, Choice, Search } from '../../parts/filters.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Table } from '../../parts/table.tsx';

/** Clusters per page. */
export const CLUSTERS = 50;
const FILTERS = [
  'q',
  'organization',
  'provider',
  'status',
  'engine',
  'version',
  'retired',
  'sort',
  'order',
  'offset',
];

export function ClustersView({ place }: { place: Place }) {
  const answer = useData<FoundClusters>(`/api/clusters?${queryOf(place, FILTERS, CLUSTERS)}`);
  const { data } = answer;
  return (
    <>
      <Title text="Clusters">{data && <p class="summary">{counted(data.total, 'cluster')}</p>}</Title>
      <Filters place={place} />
      <Progress {...answer} />
      {data && <ClusterTable data={data} place={place} isOld={answer.isOld} none="No cluster matches." />}
    </>
  );
}

function Filters({ place }: { place: Place }) {
  const { data } = useData<ClusterTerms>('/api/cluster-terms');
  const { value, set } = filtersOf(place);
  const { providers = [], statuses = [], engines = [] } = data ?? {};
  const organization = value('organization');
  const engine = value('engine');
  const versions = engines.find((each) => each.engine === engine)?.versions ?? [];
  return (
    <search class="filters">
      <Search label="Name or organization" value={value('q')} onSearch={(q) => set({ q })} />
      <Choice
        label="Provider"
        value={value('provider')}
        options={[['', 'all'], ...providers.map(({ id, name }) => [String(id), name] as const)]}
        onChoose={(provider) => set({ provider })}
      />
      <Choice
        label="State"
        value={value('status')}
        options={allOf(statuses)}
        onChoose={(status) => set({ status })}
      />
      <Choice
        label="Engine"
        value={engine}
        options={allOf(engines.map((each) => each.engine))}
        onChoose={(chosen) => set({ engine: chosen, version: '' })}
      />
      {engine !== '' && (
        <Choice
          label="Version"
          value={value('version')}
          options={allOf(versions)}
          onChoose={(version) => set({ version })}
        />
      )}
      <Choice
        label="Show"
        value={value('retired')}
        options={[
          ['', 'existing'],
          ['yes', 'retired'],
          ['all', 'all'],
        ]}
        onChoose={(retired) => set({ retired })}
      />
      {organization !== '' && (
        <button type="button" onClick={() => set({ organization: '' })}>
          of {organization} only ✕
        </button>
      )}
    </search>
  );
}

interface ClusterTableProps {
  readonly data: FoundClusters;
  readonly place: Place;
  readonly isOld: boolean;
  /** The text to show if there are no clusters. */
  readonly none: string;
  /** All clusters belong to one organization, so the table has no column for it. */
  readonly isOfOne?: boolean;
}

export function ClusterTable({ data, place, isOld, none, isOfOne = false }: ClusterTableProps) {
  if (data.rows.length === 0) return <p class="calm">{none}</p>;
  const by = (sort: ClusterSort) => sort;
  return (
    <>
      <Table
        rows={data.rows}
        id={({ id }) => id}
        isOld={isOld}
        sorting={{ place, byDefault: by('name') }}
        columns={[
          ['Cluster', ({ id, name }) => <a href={`/clusters/${id}`}>{name}</a>, '', by('name')],
          !isOfOne && [
            'Organization',
            ({ organization: { slug } }) => <a href={`/organizations/${slug}`}>{slug}</a>,
            '',
            by('organization'),
          ],
          ['State', (cluster) => <ClusterState {...cluster} />, '', by('status')],
          ['Engine', (cluster) => softwareText(cluster), '', by('engine')],
          ['Provider, region', ({ provider, region }) => `${provider.name}, ${region}`, '', by('provider')],
          ['Nodes', (cluster) => `${nodesText(cluster)} on ${cluster.machine.name}`],
          ['Changed', ({ changedAt }) => <Ago at={changedAt} />],
          ['Created', ({ createdAt }) => <Ago at={createdAt} />, '', by('created')],
        ]}
      />
      <Pager place={place} total={data.total} limit={CLUSTERS} what="clusters" />
    </>
  );
}

/** Shows the status that the control plane states, or `retired` if the control plane no longer lists the cluster. */
export function ClusterState({ status, retiredAt }: Pick<FoundCluster, 'status' | 'retiredAt'>) {
  return retiredAt === null ? status : <Badge tone="note">retired</Badge>;
}

/** `postgresql 16.4` */
export function softwareText({ engine, version }: Pick<FoundCluster, 'engine' | 'version'>): string {
  return engine === null ? 'unknown' : `${engine} ${version ?? ''}`.trimEnd();
}

/** `2 shards × 3 replicas` */
export function nodesText({ shards, replicas }: FoundCluster): string {
  return `${counted(shards, 'shard')} × ${counted(replicas, 'replica')}`;
}
