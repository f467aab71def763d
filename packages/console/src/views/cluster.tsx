/** One cluster: what it is, and what has happened to it. */
import { CLUSTER_FIELDS } from '../../../../src/domain/changes.ts';
import type { ClusterAnswer, ClusterHistoryEntry } from '../../../../src/features/console/routes/api.ts';
import { useData } from '../lib/data.ts';
import { addressWith, type Place, queryOf } from '../lib/router.ts';
import { Ago, Badge, Title, type Tone, Trouble } from '../parts/basics.tsx';
import { ClusterState, nodesText } from './clusters.tsx';

/** Changes of a page. */
const LIMIT = 50;

export function ClusterView({ place, id }: { place: Place; id: string }) {
  const { data, error } = useData<ClusterAnswer>(
    `/api/clusters/${encodeURIComponent(id)}?${queryOf(place, ['offset'], LIMIT)}`,
  );
  return (
    <>
      <Title text={data?.cluster.name ?? `Cluster ${id}`}>
        {data && (
          <p class="summary">
            of{' '}
            <a href={`/organizations/${data.cluster.organization.slug}`}>{data.cluster.organization.name}</a>
          </p>
        )}
        {data && data.cluster.retiredAt !== null && <Badge tone="note">retired</Badge>}
      </Title>
      <Trouble text={error} />
      {data && <Facts {...data} />}
      {data && <History {...data} place={place} />}
      {!data && !error && <p class="loading">Asking the database …</p>}
    </>
  );
}

function Facts({ cluster }: ClusterAnswer) {
  const { machine, disks, source, verifiedAt, retiredAt, missedRuns } = cluster;
  return (
    <dl class="facts">
      <dt>State</dt>
      <dd>
        <ClusterState {...cluster} />
        {retiredAt !== null && (
          <>
            {' '}
            <Ago at={retiredAt} />; it was {cluster.status} before
          </>
        )}
        {retiredAt === null && missedRuns > 0 && (
          <span class="muted">, and missing in the last {missedRuns} runs of its source</span>
        )}
      </dd>
      <dt>Where</dt>
      <dd>
        {cluster.provider.name}, {cluster.region}
        {cluster.regionName !== cluster.region && ` (${cluster.regionName})`}
      </dd>
      <dt>Nodes</dt>
      <dd>
        {nodesText(cluster)} on <a href={`/machines/${machine.id}`}>{machine.name}</a> ({machine.cpu} cpu,{' '}
        {machine.ram} {machine.ramUnit === 'Binary' ? 'GiB' : 'GB'})
      </dd>
      <dt>Disks</dt>
      <dd>
        {disks.length === 0 && 'none stated'}
        {disks.map((disk, position) => (
          <div key={`${position} ${disk.name}`}>
            {disk.size} {disk.unit} {disk.name} at {disk.sourceAmount} {disk.sourceCurrency}/{disk.sourcePer}
            {disk.autoscaling && ', autoscaling'}
          </div>
        ))}
      </dd>
      <dt>Created</dt>
      <dd>
        <Ago at={cluster.createdAt} />
        {cluster.user !== '' && ` by ${cluster.user}`}
      </dd>
      <dt>Source</dt>
      <dd>
        <a href={`/sources/${encodeURIComponent(source)}`}>{source}</a>, where it is {cluster.key}
        <span class="muted">
          ; read <Ago at={verifiedAt} />
        </span>
      </dd>
    </dl>
  );
}

const TONES: Readonly<Record<ClusterHistoryEntry['change'], Tone>> = {
  added: 'good',
  returned: 'good',
  changed: 'note',
  retired: 'warn',
};

function History({ history, hasOlder, place }: ClusterAnswer & { place: Place }) {
  const offset = Number(place.query.get('offset') ?? 0);
  const to = (next: number) => addressWith(place, { offset: next > 0 ? String(next) : '' });
  return (
    <section aria-labelledby="changes">
      <h2 id="changes">Changes</h2>
      {history.length === 0 ? (
        <p class="calm">Nothing has changed in the time for which changes are kept.</p>
      ) : (
        <ol class="timeline">
          {history.map((entry) => (
            <li key={`${entry.change} ${entry.changedAt}`}>
              <span class="when">
                <Ago at={entry.changedAt} />
              </span>
              <Entry {...entry} />
            </li>
          ))}
        </ol>
      )}
      <nav class="pager" aria-label="Pages of changes">
        {offset > 0 && (
          <a class="button" href={to(offset - LIMIT)}>
            Newer
          </a>
        )}
        {hasOlder && (
          <a class="button" href={to(offset + LIMIT)}>
            Older
          </a>
        )}
      </nav>
    </section>
  );
}

function Entry({ change, runId, source, before, after }: ClusterHistoryEntry) {
  const fields =
    before === null || after === null ? [] : CLUSTER_FIELDS.filter((name) => before[name] !== after[name]);
  return (
    <div>
      <Badge tone={TONES[change]}>{change}</Badge> by{' '}
      {runId === null ? 'an operator' : <a href={`/runs/${runId}`}>run {runId}</a>}
      {runId !== null && ` of ${source}`}
      {fields.map((name) => (
        <p key={name}>
          <span class="muted">{name.replace('_', ' ')}</span> {before?.[name] ?? 'none'} →{' '}
          <strong>{after?.[name] ?? 'none'}</strong>
        </p>
      ))}
    </div>
  );
}
