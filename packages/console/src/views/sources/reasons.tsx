/** Lists the rejected rows and the excluded machines of a source with their reasons. */
import type { ExcludedAnswer, RejectedAnswer } from '../../../../../src/features/console/routes/answers.ts';
import { useData } from '../../lib/data.ts';
import { count, memory } from '../../lib/format.ts';
import { filtersOf, type Place, queryOf } from '../../lib/router.ts';
import { Ago, ErrorText } from '../../parts/basics.tsx';
import { Search } from '../../parts/filters.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Table } from '../../parts/table.tsx';

const LIMIT = 100;

interface ReasonsProps {
  readonly reasons: readonly (readonly [n: number, reason: string, meaning: string])[];
}

function Reasons({ reasons }: ReasonsProps) {
  return (
    <ul class="plain card reasons">
      {reasons.map(([n, reason, meaning]) => (
        <li key={`${reason} ${meaning}`}>
          <strong>{count(n)}</strong> {reason}: {meaning}
        </li>
      ))}
    </ul>
  );
}

export function Rejected({ path, place }: { path: string; place: Place }) {
  const query = queryOf(place, ['q', 'offset'], LIMIT);
  const { data, error, isOld } = useData<RejectedAnswer>(`${path}/rejected?${query}`);
  const { value, set } = filtersOf(place);
  if (!data) return <ErrorText text={error} />;
  if (data.reasons.length === 0) return <p class="calm">The last good run rejected no row.</p>;
  return (
    <section aria-label="Rejected rows">
      <p class="muted">Readers keep the last good values of these rows.</p>
      <Reasons reasons={data.reasons.map(({ code, reason, count: n }) => [n, code, reason])} />
      <search class="filters">
        <Search label="Search" value={value('q')} onSearch={(q) => set({ q })} />
      </search>
      <Table
        rows={data.rows}
        id={rowName}
        isOld={isOld}
        columns={[
          ['Row', rowName],
          ['Kind', ({ code }) => code],
          ['Since', ({ since }) => <Ago at={since} />],
          ['Reason', ({ reason }) => reason],
        ]}
      />
      <Pager place={place} total={data.total} limit={LIMIT} what="rows" />
    </section>
  );
}

const rowName = ({ organization, key }: RejectedAnswer['rows'][number]) =>
  organization === undefined ? key : `${organization}/${key}`;

export function Excluded({ path, place }: { path: string; place: Place }) {
  const query = queryOf(place, ['offset'], LIMIT);
  const { data, error, isOld } = useData<ExcludedAnswer>(`${path}/excluded?${query}`);
  if (!data) return <ErrorText text={error} />;
  if (data.total === 0) return <p class="calm">No machine of the source is excluded.</p>;
  return (
    <section aria-label="Excluded machines">
      <Reasons reasons={data.reasons.map(({ reason, meaning, count: n }) => [n, reason, meaning])} />
      <Table
        rows={data.rows}
        id={({ id }) => id}
        isOld={isOld}
        columns={[
          ['Machine', ({ name }) => name],
          ['Region', ({ regionCode }) => regionCode],
          ['Reason', ({ reason }) => reason],
          ['cpu', ({ cpu }) => cpu, 'number'],
          ['Memory', memory, 'number'],
          [
            'Price of the source',
            ({ amount, currency, per }) => (amount === null ? '–' : `${amount} ${currency}/${per}`),
            'number',
          ],
        ]}
      />
      <Pager place={place} total={data.total} limit={LIMIT} what="machines" />
    </section>
  );
}
