/** Organizations. The server searches and sorts them. */
import type {
  FoundOrganizations,
  Organization,
  OrganizationSort,
} from '../../../../../src/features/console/routes/answers.ts';
import { act, useData } from '../../lib/data.ts';
import { count, counted } from '../../lib/format.ts';
import { filtersOf, navigate, type Place, queryOf } from '../../lib/router.ts';
import { useHasRole } from '../../lib/session.ts';
import { Ago, Badge, Progress, Title } from '../../parts/basics.tsx';
import { Choice, Search } from '../../parts/filters.tsx';
import { DialogButton, Field, Reason, textFields } from '../../parts/form-dialog.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Table } from '../../parts/table.tsx';

const LIMIT = 50;

export function OrganizationsView({ place }: { place: Place }) {
  const query = queryOf(place, ['q', 'deleted', 'sort', 'order', 'offset'], LIMIT);
  const answer = useData<FoundOrganizations>(`/api/organizations?${query}`);
  const { data } = answer;
  const mayChange = useHasRole('admin');
  const { value, set } = filtersOf(place);
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
      <Progress {...answer} />
      {data && data.rows.length > 0 && <Found data={data} place={place} isOld={answer.isOld} />}
      {data?.rows.length === 0 && <p class="calm">No organization matches.</p>}
    </>
  );
}

function Create() {
  const create = async (fields: FormData) => {
    const { slug } = await act<Organization>('/api/organizations', textFields(fields));
    navigate(`/organizations/${slug}`);
  };
  return (
    <span class="action">
      <DialogButton
        label="Create an organization"
        title="Create an organization"
        submit="Create the organization"
        act={create}
      >
        <Field
          label="Slug, cannot be changed later"
          name="slug"
          isRequired
          pattern={['[a-z0-9]([a-z0-9\\-]{0,61}[a-z0-9])?', '1 to 63 lower-case letters, digits and dashes']}
        />
        <Field label="Name, shown to people; the slug by default" name="name" />
        <Reason />
      </DialogButton>
    </span>
  );
}

function Found({ data, place, isOld }: { data: FoundOrganizations; place: Place; isOld: boolean }) {
  const by = (sort: OrganizationSort) => sort;
  return (
    <>
      <Table
        rows={data.rows}
        id={({ id }) => id}
        isOld={isOld}
        sorting={{ place, byDefault: by('slug') }}
        columns={[
          [
            'Organization',
            ({ slug, deletedAt }) => (
              <>
                <a href={`/organizations/${slug}`}>{slug}</a>
                {deletedAt !== null && ' '}
                {deletedAt !== null && <Badge tone="note">deleted</Badge>}
              </>
            ),
            '',
            by('slug'),
          ],
          ['Name', ({ name }) => name, '', by('name')],
          ['Clusters', ({ clusters }) => count(clusters), 'number', by('clusters')],
          ['Valid tokens', ({ tokens }) => count(tokens), 'number', by('tokens')],
          [
            'Last use of a token',
            ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : <Ago at={lastUsedAt} />),
            '',
            by('used'),
          ],
          ['Created', ({ createdAt }) => <Ago at={createdAt} />, '', by('created')],
        ]}
      />
      <Pager place={place} total={data.total} limit={LIMIT} what="organizations" />
    </>
  );
}
