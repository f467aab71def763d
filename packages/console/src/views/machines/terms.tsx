/** Prices of a machine for each term, their history, and the other prices of its region. */
import { MINUTES_PER_MONTH } from '../../../../../src/domain/prices/price.ts';
import type { MachineAnswer, PastTerm } from '../../../../../src/features/console/routes/answers.ts';
import { hourly, money, utc } from '../../lib/format.ts';
import { Table } from '../../parts/table.tsx';

export const TERM_NAMES: Readonly<Record<MachineAnswer['terms'][number]['term'], string>> = {
  on_demand: 'on demand',
  spot: 'spot',
  savings_plan_1y: 'savings plan, 1 year',
  savings_plan_3y: 'savings plan, 3 years',
  reserved_1y: 'reserved, 1 year',
  reserved_3y: 'reserved, 3 years',
};

export function Terms({ terms, monthlyCap, termHistory, currency, prices }: MachineAnswer) {
  const [stated] = prices;
  const listPrice = terms.find(({ term }) => term === 'on_demand')?.perMonth;
  return (
    <section aria-labelledby="terms">
      <h2 id="terms">Terms in {currency}</h2>
      {terms.length === 0 ? (
        <p class="calm">The machine has no price now.</p>
      ) : (
        <Table
          rows={terms}
          id={({ term }) => term}
          columns={[
            ['Term', ({ term }) => TERM_NAMES[term]],
            ['Per hour, effective', ({ price }) => hourly(price), 'number'],
            ['Per month of 730 hours', ({ perMonth }) => money(perMonth), 'number'],
            ['Paid upfront', ({ upfront }) => (upfront === null ? '–' : money(Number(upfront))), 'number'],
            ['Against on demand', ({ perMonth }) => difference(perMonth, listPrice), 'number'],
            [
              'Price of the source',
              ({ source }) =>
                source === null
                  ? stated && `${stated.sourceAmount} ${stated.sourceCurrency}/${stated.sourcePer}`
                  : sourceText(source),
              'number',
            ],
          ]}
        />
      )}
      {terms.length > 0 && (
        <p class="muted below">
          {monthlyCap === null
            ? 'Its source states no monthly cap.'
            : `A calendar month on demand costs at most ${money(monthlyCap)} ${currency}.`}
          {terms.length === 1 && ' Its source states no other term.'}
        </p>
      )}
      {termHistory.length > 0 && <History rows={termHistory} currency={currency ?? ''} />}
    </section>
  );
}

function difference(perMonth: number, listPrice: number | undefined): string {
  if (listPrice === undefined || listPrice === 0 || perMonth === listPrice) return '–';
  const percent = Math.round((perMonth / listPrice - 1) * 1000) / 10;
  return `${percent > 0 ? '+' : '−'}${Math.abs(percent)} %`;
}

function sourceText({ price, upfront }: NonNullable<MachineAnswer['terms'][number]['source']>): string {
  const recurring = `${price.amount} ${price.currency}/${price.per}`;
  return upfront === undefined ? recurring : `${recurring} and ${upfront} ${price.currency} upfront`;
}

function History({ rows, currency }: { rows: readonly PastTerm[]; currency: string }) {
  return (
    <details>
      <summary>Past prices of terms</summary>
      <Table
        rows={rows}
        id={({ term, from }) => `${term} ${from}`}
        columns={[
          ['Term', ({ term }) => TERM_NAMES[term]],
          ['From', ({ from }) => utc(from)],
          ['Until', ({ to }) => (to === null ? 'now' : utc(to))],
          [`${currency} per hour`, ({ price }) => (price === null ? 'not sold' : hourly(price)), 'number'],
        ]}
      />
    </details>
  );
}

const ITEM_NAMES = { block_storage: 'block storage', traffic_out: 'outgoing traffic', ipv4: 'public IPv4' };

export function RegionPrices({ regionPrices, region, currency }: MachineAnswer) {
  const rows = (regionPrices ?? []).flatMap((price) =>
    price.tiers.map((tier, i) => ({ ...price, ...tier, key: `${price.item} ${price.name} ${i}` })),
  );
  return (
    <section aria-labelledby="region-prices">
      <h2 id="region-prices">
        Other prices in {region}, in {currency}
      </h2>
      {rows.length === 0 ? (
        <p class="calm">The source of this region states no price of storage, traffic or addresses.</p>
      ) : (
        <Table
          rows={rows}
          id={({ key }) => key}
          columns={[
            ['Price', ({ item, name }) => `${ITEM_NAMES[item]}: ${name}`],
            ['From', ({ from, unit }) => (from === '0' ? '–' : `${from} ${unit}`), 'number'],
            [
              'Per unit',
              ({ item, price, unit }) =>
                item === 'traffic_out'
                  ? `${digits(Number(price))} per ${unit}`
                  : `${digits(Number(price) * MINUTES_PER_MONTH)} per ${unit} and month`,
              'number',
            ],
            ['Used by default', ({ isDefault }) => (isDefault ? 'yes' : 'no')],
          ]}
        />
      )}
    </section>
  );
}

const digits = (value: number): string => String(Number(value.toPrecision(5)));
