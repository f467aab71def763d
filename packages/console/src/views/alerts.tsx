/** Alerts: what is firing, when each kind opens, where they are sent, and what became of every message. */
import type { AlertsAnswer, ShownAlert, ShownWebhook } from '../../../../src/features/alerts/api.ts';
import { useData } from '../lib/data.ts';
import { counted } from '../lib/format.ts';
import type { Place } from '../lib/router.ts';
import { useMay } from '../lib/session.ts';
import { Acknowledged } from '../parts/acknowledged.tsx';
import { Action } from '../parts/action.tsx';
import { Ago, Badge, Lasting, Title, type Tone, Trouble } from '../parts/basics.tsx';
import { Acknowledge } from './acknowledge.tsx';
import { Deliveries } from './alerts/deliveries.tsx';

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
