/** One organization: its tokens, its clusters and its people. */
import { useState } from 'preact/hooks';
import type {
  FoundClusters,
  FoundOrganization,
  TokensAnswer,
  UsersAnswer,
} from '../../../../src/features/console/routes/api.ts';
import { act, useData } from '../lib/data.ts';
import { count, counted } from '../lib/format.ts';
import { type Place, queryOf } from '../lib/router.ts';
import { useMay } from '../lib/session.ts';
import { Ago, Badge, Title, Trouble } from '../parts/basics.tsx';
import { Field, FormDialog, Reason, textFields } from '../parts/form-dialog.tsx';
import { Pager } from '../parts/pager.tsx';
import { CLUSTERS, ClusterTable } from './clusters.tsx';
import { People } from './people.tsx';
import { Tokens } from './tokens.tsx';

export function OrganizationView({ place, slug }: { place: Place; slug: string }) {
  const path = `/api/organizations/${encodeURIComponent(slug)}`;
  const { data, error } = useData<FoundOrganization>(path);
  const tokens = useData<TokensAnswer>(`${path}/tokens?${queryOf(place, ['offset'], TOKENS)}`);
  const people = useData<UsersAnswer>(`${path}/users`);
  const [deleted, setDeleted] = useState('');
  const mayChange = useMay('admin') && data !== undefined && data.deletedAt === null;
  const show = place.query.get('show') ?? 'tokens';
  const tabs = [
    ['tokens', 'Tokens', tokens.data?.total],
    ['clusters', 'Clusters', data?.clusters],
    ['people', 'People', people.data?.rows.length],
  ] as const;
  return (
    <>
      <Title text={data?.name ?? slug}>
        {data && data.name !== slug && <p class="summary">{slug}</p>}
        {data && data.deletedAt !== null && <Badge tone="note">deleted</Badge>}
        {mayChange && (
          <span class="action">
            <Rename path={path} name={data.name} />{' '}
            <Delete path={path} organization={data} onDone={setDeleted} />
          </span>
        )}
      </Title>
      <Trouble text={error} />
      {deleted !== '' && (
        <p class="done" role="status">
          {deleted}
        </p>
      )}
      {data && <Facts {...data} />}
      {data && (
        <nav class="tabs" aria-label={`About ${data.name}`}>
          {tabs.map(([key, text, n]) => (
            <a
              key={key}
              href={key === 'tokens' ? place.path : `${place.path}?show=${key}`}
              aria-current={key === show ? 'page' : undefined}
            >
              {text}
              {n !== undefined && <span class="muted"> {count(n)}</span>}
            </a>
          ))}
        </nav>
      )}
      {show === 'tokens' && data && (
        <Tokens path={path} place={place} asked={tokens} limit={TOKENS} mayChange={mayChange} />
      )}
      {show === 'clusters' && <Clusters slug={slug} place={place} />}
      {show === 'people' && people.data && (
        <People path={path} people={people.data.rows} mayChange={mayChange} />
      )}
    </>
  );
}

/** Tokens of a page. */
const TOKENS = 50;

function Facts({ tokens, lastUsedAt, createdAt, deletedAt }: FoundOrganization) {
  return (
    <dl class="facts">
      <dt>Good tokens</dt>
      <dd>
        {count(tokens)}, {lastUsedAt === null ? 'never used' : 'last used '}
        {lastUsedAt !== null && <Ago at={lastUsedAt} />}
      </dd>
      <dt>Made</dt>
      <dd>
        <Ago at={createdAt} />
      </dd>
      {deletedAt !== null && (
        <>
          <dt>Deleted</dt>
          <dd>
            <Ago at={deletedAt} />: its clusters are shown no more, and its slug stays taken
          </dd>
        </>
      )}
    </dl>
  );
}

function Rename({ path, name }: { path: string; name: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Rename
      </button>
      {isOpen && (
        <FormDialog
          title={`Rename ${name}`}
          submit="Rename it"
          act={(fields) => act(`${path}/rename`, textFields(fields))}
          onClose={() => setOpen(false)}
        >
          <Field label="Name, shown to people; the slug stays" name="name" value={name} isNeeded />
          <Reason />
        </FormDialog>
      )}
    </>
  );
}

interface DeleteProps {
  readonly path: string;
  readonly organization: FoundOrganization;
  readonly onDone: (told: string) => void;
}

function Delete({ path, organization, onDone }: DeleteProps) {
  const [isOpen, setOpen] = useState(false);
  const { slug, name } = organization;
  const remove = async (fields: FormData) => {
    const gone = await act<{ clusters: number; tokens: number; published: boolean }>(
      `${path}/delete`,
      textFields(fields),
    );
    const later = gone.published ? '' : ' The cache is away: readers may accept them for up to 10 seconds.';
    onDone(
      `${name} is deleted: ${counted(gone.clusters, 'cluster')} shown no more, ${counted(gone.tokens, 'token')} revoked.${later}`,
    );
  };
  return (
    <>
      <button type="button" class="danger" onClick={() => setOpen(true)}>
        Delete
      </button>
      {isOpen && (
        <FormDialog
          title={`Delete ${name}`}
          submit="Delete it for good"
          isDanger
          act={remove}
          onClose={() => setOpen(false)}
        >
          <p>
            {counted(organization.clusters, 'cluster')} will be shown no more,{' '}
            {counted(organization.tokens, 'good token')} will be refused, and the slug stays taken. This
            cannot be undone.
          </p>
          <Field label={`Type the slug, ${slug}, to go on`} name="slug" isNeeded />
          <Reason isNeeded />
        </FormDialog>
      )}
    </>
  );
}

function Clusters({ slug, place }: { slug: string; place: Place }) {
  const query = queryOf(place, ['sort', 'order', 'offset'], CLUSTERS);
  query.set('organization', slug);
  const { data, error, isOld } = useData<FoundClusters>(`/api/clusters?${query}`);
  return (
    <section aria-label="Clusters">
      <Trouble text={error} />
      {data?.rows.length === 0 && <p class="calm">No control plane lists a cluster of it.</p>}
      {data && data.rows.length > 0 && <ClusterTable data={data} place={place} isOld={isOld} isOfOne />}
      {data && data.total > 0 && <Pager place={place} total={data.total} limit={CLUSTERS} what="clusters" />}
    </section>
  );
}
