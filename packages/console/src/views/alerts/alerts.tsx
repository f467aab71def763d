/** Alerts: open ones, rules, webhooks and messages. */
import type {
  AlertsAnswer,
  ShownAlert,
  ShownWebhook,
} from '../../../../../src/features/notifications/answers.ts';
import { useData } from '../../lib/data.ts';
import { counted } from '../../lib/format.ts';
import type { Place } from '../../lib/router.ts';
import { useHasRole } from '../../lib/session.ts';
import { Acknowledged } from '../../parts/acknowledged.tsx';
import { Action } from '../../parts/action.tsx';
import { Ago, Badge, Progress, TimeSince, Title, type Tone } from '../../parts/basics.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Acknowledge } from './acknowledge.tsx';
import { Deliveries } from './deliveries.tsx';

export function AlertsView({ place }: { place: Place }) {
  const answer = useData<AlertsAnswer>('/api/alerts');
  const { data } = answer;
  return (
    <>
      <Title text="Alerts">
        {data && <p class="summary">{counted(data.firing.length, 'alert')} open</p>}
      </Title>
      <Progress {...answer} />
      {data && (
        <>
          <section aria-labelledby="open">
            <h2 id="open">Open</h2>
            {data.firing.length === 0 ? (
              <p class="calm">No alert is open.</p>
            ) : (
              <OpenAlerts alerts={data.firing} />
            )}
          </section>
          <Webhooks webhooks={data.webhooks} />
          <Deliveries place={place} />
          <Rules {...data} />
          {data.over.length > 0 && (
            <section aria-labelledby="resolved">
              <h2 id="resolved">Resolved</h2>
              <ResolvedAlerts alerts={data.over} />
            </section>
          )}
        </>
      )}
    </>
  );
}

/** The columns of an alert's subject and kind. */
const about = (tone: Tone): Column<ShownAlert>[] => [
  ['About', (alert) => <Subject {...alert} />, 'tight'],
  ['Kind', ({ kind }) => <Badge tone={tone}>{kind}</Badge>],
];

function OpenAlerts({ alerts }: { alerts: readonly ShownAlert[] }) {
  const mayAcknowledge = useHasRole('operator');
  return (
    <Table
      rows={alerts}
      id={({ id }) => id}
      columns={[
        ...about('bad'),
        ['For', ({ openedAt }) => <TimeSince since={openedAt} />, 'tight'],
        [
          'Problem',
          ({ summary, acknowledgement }) => (
            <>
              {summary}
              {acknowledgement && <Acknowledged {...acknowledgement} />}
            </>
          ),
        ],
        mayAcknowledge && ['Acknowledge', (alert) => <Acknowledge {...alert} />],
      ]}
    />
  );
}

/** Links to the page that solves the alert. */
function Subject({ subject, source, path }: ShownAlert) {
  return <>{source === null ? subject : <a href={path}>{subject}</a>}</>;
}

function ResolvedAlerts({ alerts }: { alerts: readonly ShownAlert[] }) {
  return (
    <Table
      rows={alerts}
      id={({ id }) => id}
      columns={[
        ...about('note'),
        ['Opened', ({ openedAt }) => <Ago at={openedAt} />, 'tight'],
        ['Resolved', ({ resolvedAt }) => <Ago at={resolvedAt} />, 'tight'],
        [
          'Problem and end',
          ({ summary, resolution, acknowledgement }) => (
            <>
              {summary}
              {resolution !== null && <div class="muted">{resolution}</div>}
              {acknowledgement && <Acknowledged {...acknowledgement} />}
            </>
          ),
        ],
      ]}
    />
  );
}

function Rules({ rules, repeatHours }: Pick<AlertsAnswer, 'rules' | 'repeatHours'>) {
  return (
    <section aria-labelledby="rules">
      <h2 id="rules">Rules</h2>
      <p class="rule-note">
        Webhooks get a reminder every {repeatHours} hours until an alert ends or an operator acknowledges it.
        The section <code>alerts</code> of the file that FLEETBOOK_CONFIG names sets the limits.
      </p>
      <Table
        rows={rules}
        id={({ kind }) => kind}
        columns={[
          ['Kind', ({ kind }) => kind],
          ['Opens when', ({ opens }) => opens],
        ]}
      />
    </section>
  );
}

function Webhooks({ webhooks }: { webhooks: readonly ShownWebhook[] }) {
  const maySend = useHasRole('operator');
  return (
    <section aria-labelledby="webhooks">
      <h2 id="webhooks">Webhooks</h2>
      {webhooks.length === 0 ? (
        <p class="calm">
          No webhook is configured. Set ALERT_WEBHOOK_URL, or list webhooks in the file that FLEETBOOK_CONFIG
          names.
        </p>
      ) : (
        <Table
          rows={webhooks}
          id={({ id }) => id}
          columns={[
            ['Webhook', ({ id }) => id],
            ['Format', ({ format, isSigned }) => `${format}${isSigned ? ', signed' : ''}`],
            ['Kinds of alerts', ({ kinds }) => (kinds === null ? 'all' : kinds.join(', '))],
            maySend && ['Test', ({ id }) => <SendTest id={id} />],
          ]}
        />
      )}
    </section>
  );
}

const SendTest = ({ id }: { id: string }) => (
  <Action
    address={`/api/alerts/webhooks/${encodeURIComponent(id)}/test`}
    label="Send a test"
    result={({ problem }: { problem: string | null }) =>
      problem === null
        ? 'The webhook accepted the message.'
        : `The webhook did not accept the message: ${problem}.`
    }
  />
);
