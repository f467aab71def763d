/** Clusters of all organizations, searched and sorted by the server. */
import type {
  ClusterSort,
  ClusterTerms,
  FoundCluster,
  FoundClusters,
} from '../../../../src/features/console/routes/api.ts';
import { useData } from '../lib/data.ts';
import { counted } from '../lib/format.ts';
import { addressWith, navigate, type Place, queryOf } from '../lib/router.ts';
import { Ago, Badge, Choice, Search, Title, Trouble } from '../parts/basics.tsx';
import { Pager } from '../parts/pager.tsx';
import { type Column, SortedHead } from '../parts/sorted-head.tsx';

/** Rows of a page. */
export const CLUSTERS = 50;
const FILTERS = ['q', 'organization', 'provider', 'status', 'retired', 'sort', 'order', 'offset'];

export function ClustersView({ place }: { place: Place }) {
  const { data, error, isOld } = useData<FoundClusters>(`/api/clusters?${queryOf(place, FILTERS, CLUSTERS)}`);
  return (
    <>
      <Title text="Clusters">{data && <p class="summary">{counted(data.total, 'cluster')}</p>}</Title>
      <Filters place={place} />
      <Trouble text={error} />
      {data && data.rows.length > 0 && <ClusterTable data={data} place={place} isOld={isOld} />}
      {data?.rows.length === 0 && <p class="calm">No cluster is like that.</p>}
      {data && data.total > 0 && <Pager place={place} total={data.total} limit={CLUSTERS} what="clusters" />}
      {!data && !error && <p class="loading">Asking the database …</p>}
    </>
  );
}

function Filters({ place }: { place: Place }) {
  const { data } = useData<ClusterTerms>('/api/cluster-terms');
  const value = (name: string) => place.query.get(name) ?? '';
  const set = (changes: Record<string, string>) => navigate(addressWith(place, changes), true);
  const { providers = [], statuses = [] } = data ?? {};
  const status = value('status');
  const organization = value('organization');
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
        value={status}
        options={[
          ['', 'all'],
          ...(status === '' || statuses.includes(status) ? [] : [[status, status] as const]),
          ...statuses.map((each) => [each, each] as const),
        ]}
        onChoose={(next) => set({ status: next })}
      />
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

const COLUMNS: readonly Column<ClusterSort>[] = [
  ['name', 'Cluster'],
  ['organization', 'Organization'],
  ['status', 'State'],
  ['provider', 'Provider, region'],
  [undefined, 'Nodes'],
  [undefined, 'Changed'],
  ['created', 'Created'],
];

interface ClusterTableProps {
  readonly data: FoundClusters;
  readonly place: Place;
  readonly isOld: boolean;
  /** Whether all are of one organization, which need not be said then. */
  readonly isOfOne?: boolean;
}

export function ClusterTable({ data, place, isOld, isOfOne = false }: ClusterTableProps) {
  const columns = isOfOne ? COLUMNS.filter(([key]) => key !== 'organization') : COLUMNS;
  return (
    <table class={`cards ${isOld ? 'old' : ''}`}>
      <SortedHead place={place} columns={columns} usual="name" />
      <tbody>
        {data.rows.map((cluster) => (
          <ClusterRow key={cluster.id} cluster={cluster} isOfOne={isOfOne} />
        ))}
      </tbody>
    </table>
  );
}

function ClusterRow({ cluster, isOfOne }: { cluster: FoundCluster; isOfOne: boolean }) {
  const { id, name, organization, provider, region } = cluster;
  return (
    <tr>
      <th scope="row" data-label="Cluster">
        <a href={`/clusters/${id}`}>{name}</a>
      </th>
      {!isOfOne && (
        <td data-label="Organization">
          <a href={`/organizations/${organization.slug}`}>{organization.slug}</a>
        </td>
      )}
      <td data-label="State">
        <ClusterState {...cluster} />
      </td>
      <td data-label="Provider, region">
        {provider.name}, {region}
      </td>
      <td data-label="Nodes">
        {nodesText(cluster)} on {cluster.machine.name}
      </td>
      <td data-label="Changed">
        <Ago at={cluster.changedAt} />
      </td>
      <td data-label="Created">
        <Ago at={cluster.createdAt} />
      </td>
    </tr>
  );
}

/** `retired` for one that its control plane no longer lists, else what that states. */
export function ClusterState({ status, retiredAt }: Pick<FoundCluster, 'status' | 'retiredAt'>) {
  return retiredAt === null ? status : <Badge tone="note">retired</Badge>;
}

/** `2 shards × 3 replicas` */
export function nodesText({ shards, replicas }: FoundCluster): string {
  return `${counted(shards, 'shard')} × ${counted(replicas, 'replica')}`;
}
