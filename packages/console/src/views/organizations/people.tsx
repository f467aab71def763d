import type { User } from '../../../../../src/features/console/routes/answers.ts';
import { act } from '../../lib/data.ts';
import { count, counted } from '../../lib/format.ts';
import { DialogButton, Field, Reason, textFields } from '../../parts/form-dialog.tsx';
import { Table } from '../../parts/table.tsx';

interface PeopleProps {
  readonly path: string;
  readonly people: readonly User[];
  readonly mayChange: boolean;
}

/** Lists the creators of an organization's clusters. Control planes or an admin set their names. */
export function People({ path, people, mayChange }: PeopleProps) {
  return (
    <section aria-label="People">
      {people.length === 0 ? (
        <p class="calm">No cluster names its creator.</p>
      ) : (
        <Table
          rows={people}
          id={({ id }) => id}
          columns={[
            ['Name', nameOf],
            ['Clusters', ({ clusters }) => count(clusters), 'number'],
            mayChange && ['Change', (user) => <Change user={user} path={`${path}/users/${user.id}`} />],
          ]}
        />
      )}
    </section>
  );
}

function Change({ user, path }: { user: User; path: string }) {
  return (
    <span class="action">
      <DialogButton
        label="Rename"
        title={`Rename ${nameOf(user)}`}
        submit="Rename"
        act={(fields) => act(`${path}/rename`, textFields(fields))}
      >
        <Field label="First name" name="firstName" value={user.firstName} />
        <Field label="Last name" name="lastName" value={user.lastName} />
        <p class="muted">If another person here has this name, the two are merged.</p>
        <Reason />
      </DialogButton>{' '}
      <DialogButton
        label="Delete"
        title={`Delete ${nameOf(user)}`}
        submit="Delete the name"
        isDanger
        act={(fields) => act(`${path}/delete`, textFields(fields))}
      >
        <p>
          Readers will see {counted(user.clusters, 'cluster')} without a name, even if a control plane states
          the name again.
        </p>
        <Reason isRequired />
      </DialogButton>
    </span>
  );
}

const nameOf = ({ firstName, lastName }: User) => `${firstName} ${lastName}`.trim();
