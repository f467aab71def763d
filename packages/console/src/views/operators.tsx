/** Operators: role, way of signing in, last use. Commands change them. */
import type { OperatorSummary, OperatorsAnswer } from '../../../../src/features/console/routes/api.ts';
import { useData } from '../lib/data.ts';
import { Ago, Badge, Title, Trouble } from '../parts/basics.tsx';

export function OperatorsView() {
  const { data, error } = useData<OperatorsAnswer>('/api/operators');
  return (
    <>
      <Title text="Operators" />
      <Trouble text={error} />
      {data?.rows.length === 0 && <p class="calm">There is no operator yet.</p>}
      {data !== undefined && data.rows.length > 0 && <Accounts rows={data.rows} />}
      <p class="muted">
        <code>fleetbook operator</code> creates, changes and disables operators, and issues, rotates and
        revokes their tokens.
      </p>
    </>
  );
}

function Accounts({ rows }: OperatorsAnswer) {
  return (
    <table class="cards">
      <thead>
        <tr>
          <th scope="col">Operator</th>
          <th scope="col">Verified address</th>
          <th scope="col">Role</th>
          <th scope="col">Signs in with</th>
          <th scope="col">Last use</th>
          <th scope="col">Created</th>
          <th scope="col">State</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((account) => (
          <Account key={account.name} {...account} />
        ))}
      </tbody>
    </table>
  );
}

function Account({ name, verifiedAddress, role, signsInBy, tokens, createdAt, ...rest }: OperatorSummary) {
  return (
    <tr>
      <th scope="row" data-label="Operator">
        {name}
      </th>
      <td data-label="Verified address">{verifiedAddress ?? '–'}</td>
      <td data-label="Role">{role}</td>
      <td data-label="Signs in with">
        {signsInBy === 'oidc' ? 'OpenID Connect' : tokens === 1 ? '1 token' : `${tokens} tokens`}
      </td>
      <td data-label="Last use">{rest.lastSeenAt === null ? 'never' : <Ago at={rest.lastSeenAt} />}</td>
      <td data-label="Created">
        <Ago at={createdAt} />
      </td>
      <td data-label="State">
        {rest.disabledAt === null ? (
          <Badge tone="good">enabled</Badge>
        ) : (
          <>
            <Badge tone="note">disabled</Badge> <Ago at={rest.disabledAt} />
          </>
        )}
      </td>
    </tr>
  );
}
