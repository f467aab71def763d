/** What of a source cannot be used, and what of it is not published: why, and which. */
import type { ExcludedAnswer, RejectedAnswer } from '../../../../src/features/console/routes/api.ts';
import { useData } from '../lib/data.ts';
import { count } from '../lib/format.ts';
import { addressWith, navigate, type Place, queryOf } from '../lib/router.ts';
import { Ago, Search, Trouble } from '../parts/basics.tsx';
import { Pager } from '../parts/pager.tsx';

const LIMIT = 100;

export function Rejected({ path, place }: { path: string; place: Place }) {
  const { data, error, isOld } = useData<RejectedAnswer>(
    `${path}/rejected?${queryOf(place, ['q', 'offset'], LIMIT)}`,
  );
  if (!data) return <Trouble text={error} />;
  if (data.reasons.length === 0) return <p class="calm">The last good run could use every row.</p>;
  return (
    <section aria-label="Rejected rows">
      <p class="muted">Readers keep what they had of these rows.</p>
      <ul class="plain card reasons">
        {data.reasons.map(({ code, reason, count: n }) => (
          <li key={`${code} ${reason}`}>
            <strong>{count(n)}</strong> {code}: {reason}
          </li>
        ))}
      </ul>
      <search class="filters">
        <Search
          label="Search"
          value={place.query.get('q') ?? ''}
          onSearch={(q) => navigate(addressWith(place, { q }), true)}
        />
      </search>
      <table class={`cards ${isOld ? 'old' : ''}`}>
        <thead>
          <tr>
            <th scope="col">Row</th>
            <th scope="col">Kind</th>
            <th scope="col">Since</th>
            <th scope="col">Reason</th>
          </tr>
        </thead>
        <tbody>
          {data.rows.map((row) => (
            <tr key={`${row.organization ?? ''}/${row.key}`}>
              <th scope="row" data-label="Row">
                {row.organization !== undefined && `${row.organization}/`}
                {row.key}
              </th>
              <td data-label="Kind">{row.code}</td>
              <td data-label="Since">
                <Ago at={row.since} />
              </td>
              <td data-label="Reason">{row.reason}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <Pager place={place} total={data.total} limit={LIMIT} what="rows" />
    </section>
  );
}

export function Excluded({ path, place }: { path: string; place: Place }) {
  const { data, error, isOld } = useData<ExcludedAnswer>(
    `${path}/excluded?${queryOf(place, ['offset'], LIMIT)}`,
  );
  if (!data) return <Trouble text={error} />;
  if (data.total === 0) return <p class="calm">Readers see every machine that it reports.</p>;
  return (
    <section aria-label="Excluded machines">
      <ul class="plain card reasons">
        {data.reasons.map(({ reason, meaning, count: n }) => (
          <li key={reason}>
            <strong>{count(n)}</strong> {reason}: {meaning}
          </li>
        ))}
      </ul>
      <table class={`cards ${isOld ? 'old' : ''}`}>
        <thead>
          <tr>
            <th scope="col">Machine</th>
            <th scope="col">Region</th>
            <th scope="col">Reason</th>
            <th scope="col" class="number">
              cpu
            </th>
            <th scope="col" class="number">
              Memory
            </th>
            <th scope="col" class="number">
              Price of the source
            </th>
          </tr>
        </thead>
        <tbody>
          {data.rows.map(({ id, name, regionCode, reason, cpu, ram, ramUnit, amount, per, currency }) => (
            <tr key={id}>
              <th scope="row" data-label="Machine">
                {name}
              </th>
              <td data-label="Region">{regionCode}</td>
              <td data-label="Reason">{reason}</td>
              <td class="number" data-label="cpu">
                {cpu}
              </td>
              <td class="number" data-label="Memory">
                {ram} {ramUnit === 'Binary' ? 'GiB' : 'GB'}
              </td>
              <td class="number" data-label="Price of the source">
                {amount === null ? '–' : `${amount} ${currency}/${per}`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <Pager place={place} total={data.total} limit={LIMIT} what="machines" />
    </section>
  );
}
