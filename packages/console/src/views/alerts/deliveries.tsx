import type { DeliveriesAnswer, ShownDelivery } from '../../../../../src/features/notifications/answers.ts';
import { useData } from '../../lib/data.ts';
import { filtersOf, type Place, queryOf } from '../../lib/router.ts';
import { useHasRole } from '../../lib/session.ts';
import { Action } from '../../parts/action.tsx';
import { Ago, Badge, ErrorText, TimeUntil, type Tone } from '../../parts/basics.tsx';
import { allOf, Choice, Search } from '../../parts/filters.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Table } from '../../parts/table.tsx';

const LIMIT = 25;
const STATES: Readonly<Record<ShownDelivery['state'], Tone>> = {
  waiting: 'warn',
  delivered: 'good',
  'given up': 'bad',
};

/** Lists the messages to webhooks and their results. */
export function Deliveries({ place }: { place: Place }) {
  const query = queryOf(place, ['q', 'state', 'offset'], LIMIT);
  const { data, error, isOld } = useData<DeliveriesAnswer>(`/api/alerts/deliveries?${query}`);
  const maySend = useHasRole('operator');
  const { value, set } = filtersOf(place);
  return (
    <section aria-labelledby="deliveries">
      <h2 id="deliveries">Messages</h2>
      <search class="filters">
        <Search label="Search messages" value={value('q')} onSearch={(q) => set({ q })} />
        <Choice
          label="State"
          value={value('state')}
          options={allOf(Object.keys(STATES))}
          onChoose={(state) => set({ state })}
        />
      </search>
      <ErrorText text={error} />
      {data && data.rows.length > 0 && (
        <Table
          rows={data.rows}
          id={({ id }) => id}
          isOld={isOld}
          columns={[
            ['Message', ({ id }) => id],
            ['Webhook', ({ webhook }) => webhook],
            ['State', (delivery) => <State {...delivery} />],
            ['Created', ({ createdAt }) => <Ago at={createdAt} />, 'tight'],
            ['Attempts', ({ attempts }) => attempts, 'number'],
            ['Content', (delivery) => <Content {...delivery} />],
            maySend && ['Send again', (delivery) => <Resend {...delivery} />],
          ]}
        />
      )}
      {data && <Pager place={place} total={data.total} limit={LIMIT} what="messages" />}
    </section>
  );
}

function State({ state, nextAttemptAt }: ShownDelivery) {
  return (
    <>
      <Badge tone={STATES[state]}>{state}</Badge>
      {nextAttemptAt !== null && (
        <div class="muted">
          next <TimeUntil at={nextAttemptAt} />
        </div>
      )}
    </>
  );
}

function Content({ type, summaries, alerts, lastError }: ShownDelivery) {
  const more = alerts - summaries.length;
  return (
    <>
      <div>{type.replace('alerts.', '')}</div>
      {summaries.map((summary) => (
        <div key={summary} class="muted">
          {summary}
        </div>
      ))}
      {more > 0 && <div class="muted">and {more} more</div>}
      {lastError !== null && <div class="wrong">{lastError}</div>}
    </>
  );
}

function Resend({ id, state }: ShownDelivery) {
  if (state === 'waiting') return <span class="muted">waits</span>;
  return (
    <Action
      address={`/api/alerts/deliveries/${id}/resend`}
      label="Send again"
      result={() => 'A worker sends it within a minute.'}
    />
  );
}
