/** One machine: its size and facts, whether readers see it, what it has cost and what has changed. */

import { EXCLUSION_MEANINGS } from '../../../../src/domain/exclusion.ts';
import { FACT_FIELDS, factInWords } from '../../../../src/domain/machine-facts.ts';
import type { MachineAnswer } from '../../../../src/features/console/routes/api.ts';
import { useData } from '../lib/data.ts';
import { hourly, utc } from '../lib/format.ts';
import { Ago, Badge, Title, Trouble } from '../parts/basics.tsx';
import { MachineChanges } from '../parts/change-table.tsx';
import { PriceChart } from '../parts/price-chart.tsx';

const WITHDRAWN = { zero_price: 'free of charge', no_exchange_rate: 'no exchange rate' } as const;

export function MachineView({ id }: { id: string }) {
  const { data, error, isOld } = useData<MachineAnswer>(`/api/machines/${encodeURIComponent(id)}`);
  return (
    <>
      <Title text={data ? `${data.name} in ${data.region}` : `Machine ${id}`}>
        {data && <State {...data} />}
      </Title>
      <Trouble text={error} />
      {data && <Facts {...data} />}
      {data && data.prices.length === 0 && <p class="calm">It never had a price.</p>}
      {data && data.prices.length > 0 && <Prices {...data} />}
      {data && (
        <section aria-labelledby="history">
          <h2 id="history">What has changed</h2>
          {data.changes.length === 0 ? (
            <p class="calm">No change of it is kept. CHANGES_KEPT sets for how long changes are.</p>
          ) : (
            <MachineChanges rows={data.changes} isOld={isOld} isMixed />
          )}
        </section>
      )}
      {!data && !error && <p class="loading">Asking the database …</p>}
    </>
  );
}

function State({ excludedReason, retiredAt }: MachineAnswer) {
  if (retiredAt !== null) return <Badge tone="bad">retired</Badge>;
  if (excludedReason !== null) return <Badge tone="warn">not published</Badge>;
  return <Badge tone="good">published</Badge>;
}

/** Why readers do not see a machine, or that they do. */
function Published({ excludedReason, retiredAt, missedRuns, source }: MachineAnswer) {
  if (retiredAt !== null)
    return (
      <>
        no: its source stopped listing it, <Ago at={retiredAt} />
      </>
    );
  if (excludedReason !== null) {
    const meanings: Readonly<Record<string, string>> = EXCLUSION_MEANINGS;
    return (
      <>
        no: {meanings[excludedReason] ?? excludedReason} <span class="muted">({excludedReason})</span>
        {source !== null && (
          <>
            ; <a href={`/sources/${encodeURIComponent(source)}?show=excluded`}>all excluded machines</a>
          </>
        )}
      </>
    );
  }
  return <>yes{missedRuns > 0 && `; the last ${missedRuns} good runs did not list it`}</>;
}

function Facts(machine: MachineAnswer) {
  const { id, provider, providerId, region, regionName, source, cpu, ram, ramUnit, facts } = machine;
  const { createdAt, addedBy } = machine;
  const known = FACT_FIELDS.filter((field) => facts[field] !== null);
  return (
    <dl class="facts">
      <dt>Published</dt>
      <dd>
        <Published {...machine} />
      </dd>
      <dt>Size</dt>
      <dd>
        {cpu} cpu, {ram} {ramUnit === 'Binary' ? 'GiB' : 'GB'}
      </dd>
      {known.length > 0 && (
        <>
          <dt>Facts</dt>
          <dd>{known.map((field) => factInWords(field, facts)).join(', ')}</dd>
        </>
      )}
      <dt>Provider</dt>
      <dd>
        <a href={`/machines?provider=${providerId}`}>{provider}</a>,{' '}
        <a href={`/machines?provider=${providerId}&region=${encodeURIComponent(region)}`}>{region}</a>
        {regionName !== region && <span class="muted"> ({regionName})</span>}
      </dd>
      <dt>Source</dt>
      <dd>
        {source === null ? (
          'none: only clusters name it'
        ) : (
          <a href={`/sources/${encodeURIComponent(source)}`}>{source}</a>
        )}
      </dd>
      <dt>Known since</dt>
      <dd>
        {utc(createdAt)}
        {addedBy !== null && (
          <>
            , by <a href={`/runs/${addedBy}`}>run {addedBy}</a>
          </>
        )}
      </dd>
      <dt>Id</dt>
      <dd>{id}</dd>
    </dl>
  );
}

function Prices({ prices, currency }: MachineAnswer) {
  return (
    <section aria-labelledby="prices">
      <h2 id="prices">Price {currency} per hour</h2>
      <PriceChart prices={prices} currency={currency ?? ''} />
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">From</th>
            <th scope="col">Until</th>
            <th scope="col" class="number">
              {currency} per hour
            </th>
            <th scope="col" class="number">
              As the source states it
            </th>
          </tr>
        </thead>
        <tbody>
          {prices.map(({ from, to, price, withdrawn, sourceAmount, sourceCurrency, sourcePer }) => (
            <tr key={from}>
              <th scope="row" data-label="From">
                {utc(from)}
              </th>
              <td data-label="Until">{to === null ? 'now' : utc(to)}</td>
              <td class="number" data-label={`${currency} per hour`}>
                {withdrawn === null && price !== null
                  ? hourly(price)
                  : `withdrawn: ${withdrawn && WITHDRAWN[withdrawn]}`}
              </td>
              <td class="number" data-label="As the source states it">
                {sourceAmount} {sourceCurrency}/{sourcePer}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
