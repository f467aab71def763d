/** Operators: role, way of signing in, last use. Commands change them. */
import type { OperatorsAnswer } from '../../../../src/features/console/routes/answers.ts';
import { useData } from '../lib/data.ts';
import { counted } from '../lib/format.ts';
import { Ago, Badge, Progress, Title } from '../parts/basics.tsx';
import { Table } from '../parts/table.tsx';

export function OperatorsView() {
  const answer = useData<OperatorsAnswer>('/api/operators');
  const { data } = answer;
  return (
    <>
      <Title text="Operators" />
      <Progress {...answer} />
      {data?.rows.length === 0 && <p class="calm">There is no operator yet.</p>}
      {data !== undefined && data.rows.length > 0 && <Accounts {...data} />}
      <p class="muted">
        <code>fleetbook operator</code> creates, changes and disables operators, and issues, rotates and
        revokes their tokens.
      </p>
    </>
  );
}

function Accounts({ rows }: OperatorsAnswer) {
  return (
    <Table
      rows={rows}
      id={({ name }) => name}
      columns={[
        ['Operator', ({ name }) => name],
        ['Verified address', ({ verifiedAddress }) => verifiedAddress ?? '–'],
        ['Role', ({ role }) => role],
        [
          'Signs in with',
          ({ signsInBy, tokens }) => (signsInBy === 'oidc' ? 'OpenID Connect' : counted(tokens, 'token')),
        ],
        ['Last use', ({ lastSeenAt }) => (lastSeenAt === null ? 'never' : <Ago at={lastSeenAt} />)],
        ['Created', ({ createdAt }) => <Ago at={createdAt} />],
        ['State', ({ disabledAt }) => <State disabledAt={disabledAt} />],
      ]}
    />
  );
}

function State({ disabledAt }: { disabledAt: string | null }) {
  if (disabledAt === null) return <Badge tone="good">enabled</Badge>;
  return (
    <>
      <Badge tone="note">disabled</Badge> <Ago at={disabledAt} />
    </>
  );
}
