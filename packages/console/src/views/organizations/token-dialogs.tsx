/** The buttons that create, rotate and revoke a token, and their dialogs. */
import { useState } from 'preact/hooks';
import { SCOPES, type Scope } from '../../../../../src/domain/scope.ts';
import type {
  MadeToken,
  Published,
  RevokedToken,
} from '../../../../../src/features/console/routes/answers.ts';
import { act } from '../../lib/data.ts';
import { DialogButton, Field, Reason, Select, textFields } from '../../parts/form-dialog.tsx';

export type NewToken = Published<MadeToken>;

const READS: Readonly<Record<Scope, string>> = {
  'machines:read': 'machines and their prices',
  'clusters:read': 'the organization’s clusters',
};

const EXPIRIES = [
  ['30d', 'in 30 days'],
  ['90d', 'in 90 days'],
  ['365d', 'in a year'],
  ['day', 'on a date'],
  ['never', 'never'],
] as const;

export function Create({ path, onCreated }: { path: string; onCreated: (token: NewToken) => void }) {
  const [expiry, setExpiry] = useState('90d');
  const create = async (fields: FormData) => {
    const { name, expires, day, reason } = textFields(fields);
    const scopes = fields.getAll('scopes');
    if (scopes.length === 0) throw new Error('Choose what the token may read.');
    const until = expires === 'day' ? day : expires;
    onCreated(
      await act<NewToken>(`${path}/tokens`, {
        name,
        scopes,
        reason,
        ...(until !== 'never' && { expires: until }),
      }),
    );
    setExpiry('90d');
  };
  return (
    <DialogButton label="Create a token" title="Create a token" submit="Create the token" isMain act={create}>
      <Field label="Name, e.g. of the program that uses it (optional)" name="name" />
      <fieldset>
        <legend>May read</legend>
        {SCOPES.map((scope) => (
          <label key={scope} class="check">
            <input type="checkbox" name="scopes" value={scope} defaultChecked /> {READS[scope]}
          </label>
        ))}
      </fieldset>
      <Select label="Expires" name="expires" byDefault="90d" options={EXPIRIES} onChoose={setExpiry} />
      {expiry === 'day' && (
        <label class="field">
          <span>Day (UTC). Readers refuse the token from its start.</span>
          <input type="date" name="day" required />
        </label>
      )}
      <Reason />
    </DialogButton>
  );
}

const GRACES = [
  ['', 'at once'],
  ['1h', 'in an hour'],
  ['1d', 'in a day'],
  ['7d', 'in a week'],
] as const;

export function Rotate({ id, onCreated }: { id: number; onCreated: (token: NewToken) => void }) {
  return (
    <DialogButton
      label="Rotate"
      ariaLabel={`Rotate token ${id}`}
      title={`Rotate token ${id}`}
      submit="Create the new token"
      act={async (fields) => onCreated(await act<NewToken>(`/api/tokens/${id}/rotate`, textFields(fields)))}
    >
      <p>A new token with the same scopes replaces it. It is shown once.</p>
      <Select label="The old token expires" name="grace" byDefault="1h" options={GRACES} />
      <Reason />
    </DialogButton>
  );
}

interface RevokeProps {
  readonly id: number;
  readonly onRevoked: (revoked: Published<RevokedToken>) => void;
}

export function Revoke({ id, onRevoked }: RevokeProps) {
  const path = `/api/tokens/${id}/revoke`;
  return (
    <DialogButton
      label="Revoke"
      ariaLabel={`Revoke token ${id}`}
      title={`Revoke token ${id}`}
      submit="Revoke the token"
      isDanger
      act={async (fields) => onRevoked(await act<Published<RevokedToken>>(path, textFields(fields)))}
    >
      <p>Readers refuse it within two seconds. This cannot be undone.</p>
      <Reason isRequired />
    </DialogButton>
  );
}
