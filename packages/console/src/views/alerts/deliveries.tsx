/** The messages to webhooks, and what became of each. */
import type { DeliveriesAnswer, ShownDelivery } from '../../../../../src/features/alerts/api.ts';
import { useData } from '../../lib/data.ts';
import { addressWith, navigate, type Place } from '../../lib/router.ts';
import { useMay } from '../../lib/session.ts';
import { Action } from '../../parts/action.tsx';
import { Ago, Ahead, Badge, Choice, Search, type Tone, Trouble } from '../../parts/basics.tsx';
import { Pager } from '../../parts/pager.tsx';

const LIMIT = 25;
const STATES: Readonly<Record<ShownDelivery['state'], Tone>> = {
  waiting: 'warn',
  delivered: 'good',
  'given up': 'bad',
};

export function Deliveries({ place }: { place: Place }) {
  const query = new URLSearchParams({ limit: String(LIMIT) });
  for (const name of ['q', 'state', 'offset']) {
    const value = place.query.get(name);
    if (value !== null) query.set(name, value);
  }
  const { data, error, isOld } = useData<DeliveriesAnswer>(`/api/alerts/deliveries?${query}`);
  const maySend = useMay('operator');
  const set = (changes: Record<string, string>) => navigate(addressWith(place, changes), true);
  return (
    <section aria-labelledby="deliveries">
      <h2 id="deliveries">Messages</h2>
      <search class="filters">
        <Search label="Search messages" value={place.query.get('q') ?? ''} onSearch={(q) => set({ q })} />
        <Choice
          label="State"
          value={place.query.get('state') ?? ''}
          options={[['', 'all'], ...Object.keys(STATES).map((state) => [state, state] as const)]}
          onChoose={(state) => set({ state })}
        />
      </search>
      <Trouble text={error} />
      {data && data.rows.length > 0 && (
        <table class={`cards ${isOld ? 'old' : ''}`}>
          <thead>
            <tr>
              <th scope="col">Message</th>
              <th scope="col">Webhook</th>
              <th scope="col">State</th>
              <th scope="col">Made</th>
              <th scope="col" class="number">
                Tries
              </th>
              <th scope="col">What it tells</th>
              {maySend && <th scope="col">Send again</th>}
            </tr>
          </thead>
          <tbody>
            {data.rows.map((delivery) => (
              <DeliveryRow key={delivery.id} delivery={delivery} maySend={maySend} />
            ))}
          </tbody>
        </table>
      )}
      {data && <Pager place={place} total={data.total} limit={LIMIT} what="messages" />}
    </section>
  );
}

function DeliveryRow({ delivery, maySend }: { delivery: ShownDelivery; maySend: boolean }) {
  const { id, webhook, type, state, createdAt, attempts, nextAttemptAt, lastError, summaries, alerts } =
    delivery;
  const more = alerts - summaries.length;
  return (
    <tr>
      <th scope="row" data-label="Message">
        {id}
      </th>
      <td data-label="Webhook">{webhook}</td>
      <td data-label="State">
        <div>
          <Badge tone={STATES[state]}>{state}</Badge>
          {nextAttemptAt !== null && (
            <div class="muted">
              next <Ahead at={nextAttemptAt} />
            </div>
          )}
        </div>
      </td>
      <td class="tight" data-label="Made">
        <Ago at={createdAt} />
      </td>
      <td data-label="Tries" class="number">
        {attempts}
      </td>
      <td data-label="What it tells">
        <div>
          <div>{type.replace('alerts.', '')}</div>
          {summaries.map((summary) => (
            <div key={summary} class="muted">
              {summary}
            </div>
          ))}
          {more > 0 && <div class="muted">and {more} more</div>}
          {lastError !== null && <div class="wrong">{lastError}</div>}
        </div>
      </td>
      {maySend && (
        <td data-label="Send again">
          {state === 'waiting' ? (
            <span class="muted">waits</span>
          ) : (
            <Action
              address={`/api/alerts/deliveries/${id}/resend`}
              label="Send again"
              told={() => 'A worker sends it within a minute.'}
            />
          )}
        </td>
      )}
    </tr>
  );
}
