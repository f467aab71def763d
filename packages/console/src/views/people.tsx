/** The people of an organization: those who made its clusters, as its control planes name them or as an admin does. */
import { useState } from 'preact/hooks';
import type { User } from '../../../../src/features/console/routes/api.ts';
import { act } from '../lib/data.ts';
import { count, counted } from '../lib/format.ts';
import { Field, FormDialog, Reason, textFields } from '../parts/form-dialog.tsx';

interface PeopleProps {
  readonly path: string;
  readonly people: readonly User[];
  readonly mayChange: boolean;
}

export function People({ path, people, mayChange }: PeopleProps) {
  const [asked, setAsked] = useState<{ readonly user: User; readonly action: 'rename' | 'delete' }>();
  if (people.length === 0)
    return (
      <section aria-label="People">
        <p class="calm">No cluster names who made it.</p>
      </section>
    );
  return (
    <section aria-label="People">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col" class="number">
              Clusters
            </th>
            {mayChange && <th scope="col">Change</th>}
          </tr>
        </thead>
        <tbody>
          {people.map((user) => (
            <tr key={user.id}>
              <th scope="row" data-label="Name">
                {nameOf(user)}
              </th>
              <td class="number" data-label="Clusters">
                {count(user.clusters)}
              </td>
              {mayChange && (
                <td data-label="Change">
                  <span class="action">
                    <button type="button" onClick={() => setAsked({ user, action: 'rename' })}>
                      Rename
                    </button>{' '}
                    <button type="button" class="danger" onClick={() => setAsked({ user, action: 'delete' })}>
                      Delete
                    </button>
                  </span>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {asked?.action === 'rename' && (
        <FormDialog
          title={`Show ${nameOf(asked.user)} under another name`}
          submit="Rename"
          act={(fields) => act(`${path}/users/${asked.user.id}/rename`, textFields(fields))}
          onClose={() => setAsked(undefined)}
        >
          <Field label="First name" name="firstName" value={asked.user.firstName} />
          <Field label="Last name" name="lastName" value={asked.user.lastName} />
          <p class="muted">A name that somebody else here has makes one person of two.</p>
          <Reason />
        </FormDialog>
      )}
      {asked?.action === 'delete' && (
        <FormDialog
          title={`Delete ${nameOf(asked.user)}`}
          submit="Delete the name"
          isDanger
          act={(fields) => act(`${path}/users/${asked.user.id}/delete`, textFields(fields))}
          onClose={() => setAsked(undefined)}
        >
          <p>
            {counted(asked.user.clusters, 'cluster')} will be shown without a name, also where a control plane
            says it again.
          </p>
          <Reason isNeeded />
        </FormDialog>
      )}
    </section>
  );
}

const nameOf = ({ firstName, lastName }: User) => `${firstName} ${lastName}`.trim();
