/** The dialogs that create, rotate and revoke a token. */
import { useState } from 'preact/hooks';
import { SCOPES, type Scope } from '../../../../../src/domain/scope.ts';
import type { MadeToken, Published, RevokedToken } from '../../../../../src/features/console/routes/api.ts';
import { act } from '../../lib/data.ts';
import { FormDialog, Reason, textFields } from '../../parts/form-dialog.tsx';

interface QuestionProps {
  readonly onMade: (made: Published<MadeToken>) => void;
  readonly onClose: () => void;
}

const READS: Readonly<Record<Scope, string>> = {
  'machines:read': 'machines and what they cost',
  'clusters:read': 'the organization’s clusters',
};

export function Create({ path, onMade, onClose }: QuestionProps & { path: string }) {
  const [expiry, setExpiry] = useState('90d');
  const create = async (fields: FormData) => {
    const { name, expires, day, reason } = textFields(fields);
    const scopes = fields.getAll('scopes');
    if (scopes.length === 0) throw new Error('It may read nothing: choose what it may read.');
    const until = expires === 'day' ? day : expires;
    onMade(
      await act<Published<MadeToken>>(`${path}/tokens`, {
        name,
        scopes,
        reason,
        ...(until !== 'never' && { expires: until }),
      }),
    );
  };
  return (
    <FormDialog title="Create a token" submit="Create it" act={create} onClose={onClose}>
      <label class="field">
        <span>Name, e.g. of the program that uses it (may be empty)</span>
        <input name="name" maxLength={200} autocomplete="off" />
      </label>
      <fieldset>
        <legend>It may read</legend>
        {SCOPES.map((scope) => (
          <label key={scope} class="check">
            <input type="checkbox" name="scopes" value={scope} defaultChecked /> {READS[scope]}
          </label>
        ))}
      </fieldset>
      <label class="field">
        <span>It expires</span>
        <select name="expires" value={expiry} onChange={(event) => setExpiry(event.currentTarget.value)}>
          <option value="30d">in 30 days</option>
          <option value="90d">in 90 days</option>
          <option value="365d">in a year</option>
          <option value="day">on a day</option>
          <option value="never">never</option>
        </select>
      </label>
      {expiry === 'day' && (
        <label class="field">
          <span>The day, from whose beginning in UTC it is refused</span>
          <input type="date" name="day" required />
        </label>
      )}
      <Reason />
    </FormDialog>
  );
}

export function Rotate({ id, onMade, onClose }: QuestionProps & { id: number }) {
  const rotate = async (fields: FormData) =>
    onMade(await act<Published<MadeToken>>(`/api/tokens/${id}/rotate`, textFields(fields)));
  return (
    <FormDialog title={`Rotate token ${id}`} submit="Make the new one" act={rotate} onClose={onClose}>
      <p>A new token that may read the same takes its place, and is shown once.</p>
      <label class="field">
        <span>The old one is refused</span>
        <select name="grace" defaultValue="1h">
          <option value="">at once</option>
          <option value="1h">in an hour</option>
          <option value="1d">in a day</option>
          <option value="7d">in a week</option>
        </select>
      </label>
      <Reason />
    </FormDialog>
  );
}

interface RevokeProps {
  readonly id: number;
  readonly onRevoked: (revoked: Published<RevokedToken>) => void;
  readonly onClose: () => void;
}

export function Revoke({ id, onRevoked, onClose }: RevokeProps) {
  const revoke = async (fields: FormData) =>
    onRevoked(await act<Published<RevokedToken>>(`/api/tokens/${id}/revoke`, textFields(fields)));
  return (
    <FormDialog title={`Revoke token ${id}`} submit="Revoke it" isDanger act={revoke} onClose={onClose}>
      <p>Whoever uses it is refused within a second. This cannot be undone.</p>
      <Reason isNeeded />
    </FormDialog>
  );
}
