/** One machine: what it has cost. */
import type { MachineAnswer } from '../../ops/console/api.ts';
import { useData } from '../lib/data.ts';
import { hourly, utc } from '../lib/format.ts';
import { Badge, Title, Trouble } from '../parts/basics.tsx';
import { PriceChart } from '../parts/price-chart.tsx';

const WITHDRAWN = { zero_price: 'free of charge', no_exchange_rate: 'no exchange rate' } as const;

export function MachineView({ id }: { id: string }) {
  const { data, error } = useData<MachineAnswer>(`/api/machines/${encodeURIComponent(id)}`);
  return (
    <>
      <Title text={data ? `${data.name} in ${data.region}` : `Machine ${id}`}>
        {data && <p class="summary">{data.provider}</p>}
        {data && data.excludedReason !== null && (
          <Badge tone="warn">not published: {data.excludedReason}</Badge>
        )}
      </Title>
      <Trouble text={error} />
      {data && data.prices.length === 0 && <p class="calm">It never had a price.</p>}
      {data && data.prices.length > 0 && <Prices {...data} />}
    </>
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
