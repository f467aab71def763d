/** One machine: size, facts, publication, prices and changes. */

import { EXCLUSION_MEANINGS } from '../../../../../src/domain/machine.ts';
import { FACT_FIELDS, factInWords } from '../../../../../src/domain/machine-facts.ts';
import type { MachineAnswer } from '../../../../../src/features/console/routes/answers.ts';
import { useData } from '../../lib/data.ts';
import { hourly, memory, utc } from '../../lib/format.ts';
import { Ago, Badge, Facts, Progress, Title } from '../../parts/basics.tsx';
import { MachineChanges } from '../../parts/change-list.tsx';
import { PriceChart } from '../../parts/price-chart.tsx';
import { Table } from '../../parts/table.tsx';
import { RegionPrices, Terms } from './terms.tsx';

const WITHDRAWN = { zero_price: 'free of charge', no_exchange_rate: 'no exchange rate' } as const;

export function MachineView({ id }: { id: string }) {
  const answer = useData<MachineAnswer>(`/api/machines/${encodeURIComponent(id)}`);
  const { data } = answer;
  return (
    <>
      <Title text={data ? `${data.name} in ${data.region}` : `Machine ${id}`}>
        {data && <State {...data} />}
      </Title>
      <Progress {...answer} />
      {data && <MachineFacts {...data} />}
      {data && data.prices.length === 0 && <p class="calm">The machine never had a price.</p>}
      {data && <Terms {...data} />}
      {data && data.prices.length > 0 && <Prices {...data} />}
      {data && data.stock.length > 0 && <Stock {...data} />}
      {data && <RegionPrices {...data} />}
      {data && (
        <section aria-labelledby="history">
          <h2 id="history">Changes</h2>
          {data.changes.length === 0 ? (
            <p class="calm">No stored change. CHANGES_KEPT sets for how many days changes are stored.</p>
          ) : (
            <MachineChanges rows={data.changes} isOld={answer.isOld} isMixed />
          )}
        </section>
      )}
    </>
  );
}

function State({ excludedReason, retiredAt }: MachineAnswer) {
  if (retiredAt !== null) return <Badge tone="bad">retired</Badge>;
  if (excludedReason !== null) return <Badge tone="warn">not published</Badge>;
  return <Badge tone="good">published</Badge>;
}

/** Shows whether readers see the machine, and if not, the reason. */
function Published({ excludedReason, retiredAt, missedRuns, source }: MachineAnswer) {
  if (retiredAt !== null)
    return (
      <>
        no: its source stopped listing it, <Ago at={retiredAt} />
      </>
    );
  if (excludedReason === null)
    return <>yes{missedRuns > 0 && `; the last ${missedRuns} good runs did not list it`}</>;
  return (
    <>
      no: {EXCLUSION_MEANINGS[excludedReason] ?? excludedReason} <span class="muted">({excludedReason})</span>
      {source !== null && (
        <>
          ; <a href={`/sources/${encodeURIComponent(source)}?show=excluded`}>all excluded machines</a>
        </>
      )}
    </>
  );
}

function Available({ stock, availableShare }: MachineAnswer) {
  if (availableShare === null) return <>in no list of readers</>;
  const percent = (availableShare * 100).toLocaleString('en', { maximumFractionDigits: 1 });
  return (
    <>
      {stock[0]?.stock === 'sold_out' ? 'sold out' : 'yes'}; {percent} % of the last 30 days
    </>
  );
}

function MachineFacts(machine: MachineAnswer) {
  const { id, provider, providerId, region, regionName, source, cpu, facts, createdAt, addedBy } = machine;
  const known = FACT_FIELDS.filter((field) => facts[field] !== null);
  const ofProvider = `/machines?provider=${providerId}`;
  return (
    <Facts
      facts={{
        Published: <Published {...machine} />,
        Available: <Available {...machine} />,
        Size: `${cpu} cpu, ${memory(machine)}`,
        Facts: known.map((field) => factInWords(field, facts)).join(', '),
        Provider: (
          <>
            <a href={ofProvider}>{provider}</a>,{' '}
            <a href={`${ofProvider}&region=${encodeURIComponent(region)}`}>{region}</a>
            {regionName !== region && <span class="muted"> ({regionName})</span>}
          </>
        ),
        Source:
          source === null ? (
            'none: only clusters refer to it'
          ) : (
            <a href={`/sources/${encodeURIComponent(source)}`}>{source}</a>
          ),
        'Known since': (
          <>
            {utc(createdAt)}
            {addedBy !== null && ', by '}
            {addedBy !== null && <a href={`/runs/${addedBy}`}>run {addedBy}</a>}
          </>
        ),
        Id: id,
      }}
    />
  );
}

function Stock({ stock }: MachineAnswer) {
  return (
    <section aria-labelledby="stock">
      <h2 id="stock">Stock</h2>
      <Table
        rows={stock}
        id={({ from }) => from}
        columns={[
          ['From', ({ from }) => utc(from)],
          ['Until', ({ to }) => (to === null ? 'now' : utc(to))],
          [
            'Stock',
            (period) =>
              period.stock === 'available' ? (
                <Badge tone="good">available</Badge>
              ) : (
                <Badge tone="warn">sold out</Badge>
              ),
          ],
        ]}
      />
    </section>
  );
}

function Prices({ prices, currency }: MachineAnswer) {
  return (
    <section aria-labelledby="prices">
      <h2 id="prices">Price in {currency} per hour</h2>
      <PriceChart prices={prices} currency={currency ?? ''} />
      <Table
        rows={prices}
        id={({ from }) => from}
        columns={[
          ['From', ({ from }) => utc(from)],
          ['Until', ({ to }) => (to === null ? 'now' : utc(to))],
          [
            `${currency} per hour`,
            ({ withdrawn, price }) =>
              withdrawn === null && price !== null
                ? hourly(price)
                : `withdrawn: ${withdrawn && WITHDRAWN[withdrawn]}`,
            'number',
          ],
          [
            'Price of the source',
            ({ sourceAmount, sourceCurrency, sourcePer }) => `${sourceAmount} ${sourceCurrency}/${sourcePer}`,
            'number',
          ],
        ]}
      />
    </section>
  );
}
