/** Alerts: what is firing, when each kind opens, where they are sent, and what became of every message. */
import { useState } from 'preact/hooks';
import type {
  AlertsAnswer,
  DeliveriesAnswer,
  ShownAlert,
  ShownDelivery,
  ShownWebhook,
} from '../../../../src/features/alerts/api.ts';
import { act, useData } from '../lib/data.ts';
import { counted } from '../lib/format.ts';
import { addressWith, navigate, type Place } from '../lib/router.ts';
import { useMay } from '../lib/session.ts';
import { Acknowledged } from '../parts/acknowledged.tsx';
import { Ago, Ahead, Badge, Choice, Lasting, Search, Title, type Tone, Trouble } from '../parts/basics.tsx';
import { Pager } from '../parts/pager.tsx';
import { Acknowledge } from './acknowledge.tsx';

export function AlertsView({ place }: { place: Place }) {
  const { data, error } = useData<AlertsAnswer>('/api/alerts');
  return (
    <>
      <Title text="Alerts">
        {data && <p class="summary">{counted(data.firing.length, 'alert')} firing</p>}
      </Title>
      <Trouble text={error} />
      {!data && !error && <p class="loading">Asking the database …</p>}
      {data && (
        <>
          <section aria-labelledby="firing">
            <h2 id="firing">Firing</h2>
            {data.firing.length === 0 ? (
              <p class="calm">Nothing is wrong, by the rules below.</p>
            ) : (
              <Firing alerts={data.firing} />
            )}
          </section>
          <Webhooks webhooks={data.webhooks} />
          <Deliveries place={place} />
          <Rules {...data} />
          {data.over.length > 0 && (
            <section aria-labelledby="over">
              <h2 id="over">Over</h2>
              <Over alerts={data.over} />
            </section>
          )}
        </>
      )}
    </>
  );
}

function Firing({ alerts }: { alerts: readonly ShownAlert[] }) {
  const mayAcknowledge = useMay('operator');
  return (
    <table class="cards">
      <thead>
        <tr>
          <th scope="col">About</th>
          <th scope="col">Kind</th>
          <th scope="col">For</th>
          <th scope="col">What is wrong</th>
          {mayAcknowledge && <th scope="col">Acknowledge</th>}
        </tr>
      </thead>
      <tbody>
        {alerts.map((alert) => (
          <tr key={alert.id}>
            <About alert={alert} tone="bad" />
            <td class="tight" data-label="For">
              <Lasting since={alert.openedAt} />
            </td>
            <td data-label="What is wrong">
              <div>
                {alert.summary}
                {alert.acknowledgement && <Acknowledged {...alert.acknowledgement} />}
              </div>
            </td>
            {mayAcknowledge && (
              <td data-label="Acknowledge">
                <Acknowledge {...alert} />
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The first cells of a row: what it is about, and its kind. */
function About({ alert, tone }: { alert: ShownAlert; tone: Tone }) {
  return (
    <>
      <th scope="row" class="tight" data-label="About">
        <Subject {...alert} />
      </th>
      <td data-label="Kind">
        <Badge tone={tone}>{alert.kind}</Badge>
      </td>
    </>
  );
}

/** Links to the page on which one can do something about it. */
function Subject({ kind, subject, source, details }: ShownAlert) {
  const { batch } = details as { batch?: number };
  if (kind === 'batch_held' && batch !== undefined) return <a href={`/held/${batch}`}>{subject}</a>;
  if (source === null) return <>{subject}</>;
  return <a href={`/sources/${encodeURIComponent(source)}`}>{subject}</a>;
}

function Over({ alerts }: { alerts: readonly ShownAlert[] }) {
  return (
    <table class="cards">
      <thead>
        <tr>
          <th scope="col">About</th>
          <th scope="col">Kind</th>
          <th scope="col">Opened</th>
          <th scope="col">Over</th>
          <th scope="col">What was wrong, and how it ended</th>
        </tr>
      </thead>
      <tbody>
        {alerts.map((alert) => (
          <tr key={alert.id}>
            <About alert={alert} tone="note" />
            <td class="tight" data-label="Opened">
              <Ago at={alert.openedAt} />
            </td>
            <td class="tight" data-label="Over">
              <Ago at={alert.resolvedAt} />
            </td>
            <td data-label="What was wrong">
              <div>
                {alert.summary}
                {alert.resolution !== null && <div class="muted">{alert.resolution}</div>}
                {alert.acknowledgement && <Acknowledged {...alert.acknowledgement} />}
              </div>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Rules({ rules, repeatHours }: Pick<AlertsAnswer, 'rules' | 'repeatHours'>) {
  return (
    <section aria-labelledby="rules">
      <h2 id="rules">Rules</h2>
      <p class="rule-note">
        A reminder is sent every {repeatHours} hours until an alert ends or is acknowledged. The limits are in
        the file that FLEETBOOK_CONFIG names.
      </p>
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Kind</th>
            <th scope="col">Opens when</th>
          </tr>
        </thead>
        <tbody>
          {rules.map(({ kind, opens }) => (
            <tr key={kind}>
              <th scope="row" data-label="Kind">
                {kind}
              </th>
              <td data-label="Opens when">{opens}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Webhooks({ webhooks }: { webhooks: readonly ShownWebhook[] }) {
  const maySend = useMay('operator');
  return (
    <section aria-labelledby="webhooks">
      <h2 id="webhooks">Webhooks</h2>
      {webhooks.length === 0 ? (
        <p class="calm">
          Nobody is told: set ALERT_WEBHOOK_URL, or list webhooks in the file that FLEETBOOK_CONFIG names.
        </p>
      ) : (
        <table class="cards">
          <thead>
            <tr>
              <th scope="col">Webhook</th>
              <th scope="col">Format</th>
              <th scope="col">Told of</th>
              {maySend && <th scope="col">Test</th>}
            </tr>
          </thead>
          <tbody>
            {webhooks.map(({ id, format, isSigned, kinds }) => (
              <tr key={id}>
                <th scope="row" data-label="Webhook">
                  {id}
                </th>
                <td data-label="Format">
                  {format}
                  {isSigned ? ', signed' : ''}
                </td>
                <td data-label="Told of">{kinds === null ? 'everything' : kinds.join(', ')}</td>
                {maySend && (
                  <td data-label="Test">
                    <Action
                      address={`/api/alerts/webhooks/${encodeURIComponent(id)}/test`}
                      label="Send a test"
                      told={({ problem }: { problem: string | null }) =>
                        problem === null ? 'It took the message.' : `It did not take the message: ${problem}.`
                      }
                    />
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

interface ActionProps<T> {
  readonly address: string;
  readonly label: string;
  readonly told: (answer: T) => string;
}

/** A button that has something done, and says beside itself what came of it. */
function Action<T>({ address, label, told }: ActionProps<T>) {
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    setText('');
    try {
      setText(told(await act<T>(address, {})));
    } catch (error) {
      setText(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  return (
    <span class="action">
      <button type="button" disabled={busy} onClick={() => void run()}>
        {label}
      </button>{' '}
      <span class="muted" role="status">
        {text}
      </span>
    </span>
  );
}

const LIMIT = 25;
const STATES: Readonly<Record<ShownDelivery['state'], Tone>> = {
  waiting: 'warn',
  delivered: 'good',
  'given up': 'bad',
};

function Deliveries({ place }: { place: Place }) {
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
