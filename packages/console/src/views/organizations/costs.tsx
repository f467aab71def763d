/** What the clusters of an organization cost, and which machines would be cheaper. */
import { useMemo } from 'preact/hooks';
import { sumOf } from '../../../../../src/domain/prices/price.ts';
import type { CostRow, CostShare, CostsAnswer } from '../../../../../src/features/console/routes/answers.ts';
import { useData } from '../../lib/data.ts';
import { count, counted, money } from '../../lib/format.ts';
import { type Place, queryOf } from '../../lib/router.ts';
import { Badge, Progress } from '../../parts/basics.tsx';
import { LineChart } from '../../parts/line-chart.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Table } from '../../parts/table.tsx';

/** Clusters per page. */
const LIMIT = 50;

export function Costs({ path, place }: { path: string; place: Place }) {
  const answer = useData<CostsAnswer>(`${path}/costs?${queryOf(place, ['offset'], LIMIT)}`);
  const { data } = answer;
  return (
    <section aria-label="Cost">
      <Progress {...answer} text="Calculating …" />
      {data?.clusters === 0 && (
        <p class="calm">
          No control plane lists a cluster of this organization, so nothing costs anything. Configure a source
          of clusters, see the page <em>sources</em> of the documentation.
        </p>
      )}
      {data && data.clusters > 0 && <Found data={data} place={place} isOld={answer.isOld} />}
    </section>
  );
}

function Found({ data, place, isOld }: { data: CostsAnswer; place: Place; isOld: boolean }) {
  const currency = data.currency ?? '';
  return (
    <>
      <Summary data={data} currency={currency} />
      <OverTime history={data.history} currency={currency} />
      <div class="cost-shares">
        <Shares
          title="By provider"
          total={data.knownPerMonth}
          currency={currency}
          shares={data.providers.map((each) => ({ ...each, text: each.name }))}
        />
        <Shares
          title="By region"
          total={data.knownPerMonth}
          currency={currency}
          shares={data.regions.map((each) => ({ ...each, text: `${each.provider}, ${each.code}` }))}
        />
      </div>
      <h2>Clusters</h2>
      <p class="muted">
        {currency} per month of 730 hours. The alternative is the cheapest machine of the same region with at
        least the same size; a known architecture or kind of CPU does not differ.
      </p>
      <Table rows={data.rows} id={({ id }) => id} isOld={isOld} columns={COLUMNS} />
      <Pager place={place} total={data.clusters} limit={LIMIT} what="clusters" />
    </>
  );
}

function Summary({ data, currency }: { data: CostsAnswer; currency: string }) {
  const { clusters, savingPerMonth, incomplete } = data;
  return (
    <ul class="tiles">
      <li>
        <strong>{sumText(data)}</strong> {currency} per month for {counted(clusters, 'cluster')}
      </li>
      {savingPerMonth > 0 && (
        <li class="good">
          <strong>{money(savingPerMonth)}</strong> {currency} less per month with the alternatives
        </li>
      )}
      {incomplete > 0 && (
        <li class="warn">
          <strong>{count(incomplete)}</strong> with an unknown price: no sum with them is known
        </li>
      )}
    </ul>
  );
}

function OverTime({ history, currency }: { history: CostsAnswer['history']; currency: string }) {
  const lines = useMemo(() => [...history.lines], [history]);
  return (
    <>
      <LineChart
        title={`${currency} per month`}
        times={history.times}
        lines={lines}
        write={money}
        writeAxis={count}
        atLeast={1}
        empty="No price is known."
        isDaily
      />
      <p class="muted">
        What the clusters of today cost at the prices of each day. A line has a gap while the price of a
        cluster is unknown; the thin dotted line has the known parts.
      </p>
    </>
  );
}

interface SharesProps {
  readonly title: string;
  readonly total: number;
  readonly currency: string;
  readonly shares: readonly (CostShare & { readonly text: string })[];
}

/** Shares that the list shows; the others have one row. */
const MOST_SHARES = 8;

function Shares({ title, total, currency, shares }: SharesProps) {
  const rest = shares.slice(MOST_SHARES);
  const known = rest.map(({ knownPerMonth }) => knownPerMonth);
  const others = {
    text: counted(rest.length, 'other'),
    clusters: rest.reduce((sum, { clusters }) => sum + clusters, 0),
    perMonth: rest.every(({ perMonth }) => perMonth !== null) ? sumOf(known) : null,
    knownPerMonth: sumOf(known),
  };
  return (
    <section class="card" aria-label={title}>
      <h3>{title}</h3>
      <ul class="shares">
        {[...shares.slice(0, MOST_SHARES), ...(rest.length > 0 ? [others] : [])].map(
          ({ text, clusters, perMonth, knownPerMonth }) => (
            <li key={text}>
              <span>
                {text} <span class="muted">{counted(clusters, 'cluster')}</span>
              </span>
              <strong>
                {sumText({ perMonth, knownPerMonth })} {currency}
              </strong>
              <span class="bar-of" aria-hidden="true">
                <span style={{ width: `${total > 0 ? (100 * knownPerMonth) / total : 0}%` }} />
              </span>
            </li>
          ),
        )}
      </ul>
    </section>
  );
}

/** Names a price that is not the current list price. */
export function PriceBadge({ source }: { source: CostRow['priceSource'] }) {
  if (source !== 'book' && source !== 'creation') return null;
  return (
    <>
      {' '}
      <Badge tone="note">{source === 'book' ? 'own price' : 'price at creation, estimated'}</Badge>
    </>
  );
}

/** Writes a sum. With an unknown part it is at least the sum of the others. */
export const sumText = ({ perMonth, knownPerMonth }: Pick<CostShare, 'perMonth' | 'knownPerMonth'>) =>
  perMonth === null ? `at least ${money(knownPerMonth)}` : money(perMonth);

const amount = (value: number | null) => (value === null ? 'unknown' : money(value));

const COLUMNS = [
  ['Cluster', ({ id, slug }: CostRow) => <a href={`/clusters/${id}`}>{slug}</a>],
  ['Provider, region', ({ provider, region }: CostRow) => `${provider}, ${region}`],
  [
    'Machine',
    ({ machine, nodes, priceSource }: CostRow) => (
      <>
        {nodes > 1 && `${nodes} × `}
        <a href={`/machines/${machine.id}`}>{machine.name}</a>
        <PriceBadge source={priceSource} />
      </>
    ),
  ],
  ['Machines', ({ machinePerMonth }: CostRow) => amount(machinePerMonth), 'number'],
  ['Disks', ({ disksPerMonth }: CostRow) => amount(disksPerMonth), 'number'],
  ['Total', (row: CostRow) => sumText(row), 'number'],
  [
    'Alternative',
    ({ best }: CostRow) =>
      best === null ? (
        <span class="muted">none is cheaper</span>
      ) : (
        <>
          <a href={`/machines/${best.id}`}>{best.name}</a>, {money(best.savingPerMonth)} less
        </>
      ),
  ],
] as const;
