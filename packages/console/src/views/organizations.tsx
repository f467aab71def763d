/** Organizations, searched and sorted by the server. */
import { useState } from 'preact/hooks';
import type {
  FoundOrganization,
  FoundOrganizations,
  Organization,
  OrganizationSort,
} from '../../../../src/features/console/routes/api.ts';
import { act, useData } from '../lib/data.ts';
import { count, counted } from '../lib/format.ts';
import { addressWith, navigate, type Place, queryOf } from '../lib/router.ts';
import { useMay } from '../lib/session.ts';
import { Ago, Badge, Choice, Search, Title, Trouble } from '../parts/basics.tsx';
import { Field, FormDialog, Reason, textFields } from '../parts/form-dialog.tsx';
import { Pager } from '../parts/pager.tsx';
import { type Column, SortedHead } from '../parts/sorted-head.tsx';

const LIMIT = 50;

export function OrganizationsView({ place }: { place: Place }) {
  const query = queryOf(place, ['q', 'deleted', 'sort', 'order', 'offset'], LIMIT);
  const { data, error, isOld } = useData<FoundOrganizations>(`/api/organizations?${query}`);
  const mayChange = useMay('admin');
  const value = (name: string) => place.query.get(name) ?? '';
  const set = (changes: Record<string, string>) => navigate(addressWith(place, changes), true);
  return (
    <>
      <Title text="Organizations">
        {data && <p class="summary">{counted(data.total, 'organization')}</p>}
        {mayChange && <Create />}
      </Title>
      <search class="filters">
        <Search label="Slug or name" value={value('q')} onSearch={(q) => set({ q })} />
        <Choice
          label="Show"
          value={value('deleted')}
          options={[
            ['', 'existing'],
            ['yes', 'deleted'],
            ['all', 'all'],
          ]}
          onChoose={(deleted) => set({ deleted })}
        />
      </search>
      <Trouble text={error} />
      {data && data.rows.length > 0 && <Found data={data} place={place} isOld={isOld} />}
      {data?.rows.length === 0 && <p class="calm">No organization is like that.</p>}
      {data && data.total > 0 && (
        <Pager place={place} total={data.total} limit={LIMIT} what="organizations" />
      )}
      {!data && !error && <p class="loading">Asking the database …</p>}
    </>
  );
}

function Create() {
  const [isOpen, setOpen] = useState(false);
  const create = async (fields: FormData) => {
    const { slug } = await act<Organization>('/api/organizations', textFields(fields));
    navigate(`/organizations/${slug}`);
  };
  return (
    <span class="action">
      <button type="button" onClick={() => setOpen(true)}>
        Create an organization
      </button>
      {isOpen && (
        <FormDialog
          title="Create an organization"
          submit="Create it"
          act={create}
          onClose={() => setOpen(false)}
        >
          <Field
            label="Slug, which stays for good"
            name="slug"
            isNeeded
            pattern={[
              '[a-z0-9]([a-z0-9\\-]{0,61}[a-z0-9])?',
              '1 to 63 lower-case letters, digits and dashes',
            ]}
          />
          <Field label="Name, shown to people; the slug unless given" name="name" />
          <Reason />
        </FormDialog>
      )}
    </span>
  );
}

const COLUMNS: readonly Column<OrganizationSort>[] = [
  ['slug', 'Organization'],
  ['name', 'Name'],
  ['clusters', 'Clusters', true],
  ['tokens', 'Good tokens', true],
  ['used', 'Last use of a token'],
  ['created', 'Made'],
];

function Found({ data, place, isOld }: { data: FoundOrganizations; place: Place; isOld: boolean }) {
  return (
    <table class={`cards ${isOld ? 'old' : ''}`}>
      <SortedHead place={place} columns={COLUMNS} usual="slug" />
      <tbody>
        {data.rows.map((organization) => (
          <OrganizationRow key={organization.id} {...organization} />
        ))}
      </tbody>
    </table>
  );
}

function OrganizationRow({ slug, name, clusters, tokens, ...rest }: FoundOrganization) {
  return (
    <tr>
      <th scope="row" data-label="Organization">
        <a href={`/organizations/${slug}`}>{slug}</a>
        {rest.deletedAt !== null && (
          <>
            {' '}
            <Badge tone="note">deleted</Badge>
          </>
        )}
      </th>
      <td data-label="Name">{name}</td>
      <td class="number" data-label="Clusters">
        {count(clusters)}
      </td>
      <td class="number" data-label="Good tokens">
        {count(tokens)}
      </td>
      <td data-label="Last use">{rest.lastUsedAt === null ? 'never' : <Ago at={rest.lastUsedAt} />}</td>
      <td data-label="Made">
        <Ago at={rest.createdAt} />
      </td>
    </tr>
  );
}
