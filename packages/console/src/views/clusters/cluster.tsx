/** One cluster: its facts and its changes. */
import { endsInWords } from '../../../../../src/domain/machine-facts.ts';
import { CLUSTER_FIELDS } from '../../../../../src/domain/run.ts';
import type {
  ClusterAnswer,
  ClusterHistoryEntry,
} from '../../../../../src/features/console/routes/answers.ts';
import { useData } from '../../lib/data.ts';
import { memory, money } from '../../lib/format.ts';
import { type Place, queryOf } from '../../lib/router.ts';
import { Ago, Badge, Facts, Progress, Title, type Tone } from '../../parts/basics.tsx';
import { Links, toOffset } from '../../parts/pager.tsx';
import { endText } from '../lifecycle.tsx';
import { PriceBadge, sumText } from '../organizations/costs.tsx';
import { ClusterState, nodesText, softwareText } from './clusters.tsx';

/** Changes per page. */
const LIMIT = 50;

export function ClusterView({ place, id }: { place: Place; id: string }) {
  const answer = useData<ClusterAnswer>(
    `/api/clusters/${encodeURIComponent(id)}?${queryOf(place, ['offset'], LIMIT)}`,
  );
  const { data } = answer;
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
      <Progress {...answer} />
      {data && <ClusterFacts {...data} />}
      {data && <History {...data} place={place} />}
    </>
  );
}

function ClusterFacts({ cluster, lifecycle, cost }: ClusterAnswer) {
  const { machine, source, region, regionName } = cluster;
  return (
    <Facts
      facts={{
        State: <State {...cluster} />,
        Engine: softwareText(cluster),
        'End of the version': endText(lifecycle),
        Where: `${cluster.provider.name}, ${region}${regionName === region ? '' : ` (${regionName})`}`,
        Nodes: (
          <>
            {nodesText(cluster)} on <a href={`/machines/${machine.id}`}>{machine.name}</a> ({machine.cpu} cpu,{' '}
            {memory(machine)}){endsInWords(machine) !== '' && `; ${endsInWords(machine)}`}
          </>
        ),
        Disks: <Disks {...cluster} />,
        Cost: cost && <Cost {...cost} />,
        Created: (
          <>
            <Ago at={cluster.createdAt} />
            {cluster.user !== '' && ` by ${cluster.user}`}
          </>
        ),
        Source: (
          <>
            <a href={`/sources/${encodeURIComponent(source)}`}>{source}</a>, where it is {cluster.key}
            <span class="muted">
              ; read <Ago at={cluster.verifiedAt} />
            </span>
          </>
        ),
      }}
    />
  );
}

function State(cluster: ClusterAnswer['cluster']) {
  const { retiredAt, status, missedRuns } = cluster;
  return (
    <>
      <ClusterState {...cluster} />
      {retiredAt !== null && (
        <>
          {' '}
          <Ago at={retiredAt} />; it was {status} before
        </>
      )}
      {retiredAt === null && missedRuns > 0 && (
        <span class="muted">, and missing in the last {missedRuns} runs of its source</span>
      )}
    </>
  );
}

function Cost({ currency, priceSource, best, ...cost }: NonNullable<ClusterAnswer['cost']>) {
  const part = (amount: number | null) => (amount === null ? 'unknown' : money(amount));
  return (
    <>
      {sumText(cost)} {currency} per month of 730 hours{' '}
      <span class="muted">
        (machines {part(cost.machinePerMonth)}, disks {part(cost.disksPerMonth)})
      </span>{' '}
      <PriceBadge source={priceSource} />
      {best && (
        <div>
          <a href={`/machines/${best.id}`}>{best.name}</a> costs {money(best.savingPerMonth)} {currency} less
        </div>
      )}
    </>
  );
}

function Disks({ disks }: ClusterAnswer['cluster']) {
  if (disks.length === 0) return <>none stated</>;
  return (
    <>
      {disks.map((disk, position) => (
        <div key={`${position} ${disk.name}`}>
          {disk.size} {disk.unit} {disk.name} at {disk.sourceAmount} {disk.sourceCurrency} per{' '}
          {disk.pricedUnit} and {disk.sourcePer}
          {disk.autoscaling && ', autoscaling'}
        </div>
      ))}
    </>
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
  return (
    <section aria-labelledby="changes">
      <h2 id="changes">Changes</h2>
      {history.length === 0 ? (
        <p class="calm">No stored change. CHANGES_KEPT sets for how many days changes are stored.</p>
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
      <Links
        label="Pages of changes"
        links={[
          offset > 0 && ['Newer', toOffset(place, offset - LIMIT)],
          hasOlder && ['Older', toOffset(place, offset + LIMIT)],
        ]}
      />
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
