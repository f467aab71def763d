/** One organization: tokens, clusters, their cost, own prices, and people. */
import { useState } from 'preact/hooks';
import type {
  FoundClusters,
  FoundOrganization,
  TokensAnswer,
  UsersAnswer,
} from '../../../../../src/features/console/routes/answers.ts';
import { act, useData } from '../../lib/data.ts';
import { count, counted } from '../../lib/format.ts';
import { type Place, queryOf } from '../../lib/router.ts';
import { useHasRole } from '../../lib/session.ts';
import { Ago, Badge, Facts, Progress, Tabs, Title } from '../../parts/basics.tsx';
import { DialogButton, Field, Reason, textFields } from '../../parts/form-dialog.tsx';
import { CLUSTERS, ClusterTable } from '../clusters/clusters.tsx';
import { Costs } from './costs.tsx';
import { People } from './people.tsx';
import { PriceBook } from './price-book.tsx';
import { Tokens } from './tokens.tsx';

/** Tokens per page. */
const TOKENS = 50;

export function OrganizationView({ place, slug }: { place: Place; slug: string }) {
  const path = `/api/organizations/${encodeURIComponent(slug)}`;
  const answer = useData<FoundOrganization>(path);
  const { data } = answer;
  const tokens = useData<TokensAnswer>(`${path}/tokens?${queryOf(place, ['offset'], TOKENS)}`);
  const people = useData<UsersAnswer>(`${path}/users`);
  const [deleted, setDeleted] = useState('');
  const mayChange = useHasRole('admin') && data !== undefined && data.deletedAt === null;
  const show = place.query.get('show') ?? 'tokens';
  const tabs = [
    ['tokens', 'Tokens', tokens.data?.total],
    ['clusters', 'Clusters', data?.clusters],
    ['cost', 'Cost', undefined],
    ['prices', 'Own prices', undefined],
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
      <Progress {...answer} />
      {deleted !== '' && (
        <p class="done" role="status">
          {deleted}
        </p>
      )}
      {data && <OrganizationFacts {...data} />}
      {data && (
        <Tabs
          label={`About ${data.name}`}
          tabs={tabs.map(([key, text, n]) => ({
            text,
            href: key === 'tokens' ? place.path : `${place.path}?show=${key}`,
            isCurrent: key === show,
            n,
          }))}
        />
      )}
      {show === 'tokens' && data && (
        <Tokens path={path} place={place} answer={tokens} limit={TOKENS} mayChange={mayChange} />
      )}
      {show === 'clusters' && <Clusters slug={slug} place={place} />}
      {show === 'cost' && <Costs path={path} place={place} />}
      {show === 'prices' && data && <PriceBook path={path} place={place} mayChange={mayChange} />}
      {show === 'people' && people.data && (
        <People path={path} people={people.data.rows} mayChange={mayChange} />
      )}
    </>
  );
}

function OrganizationFacts({ tokens, lastUsedAt, createdAt, deletedAt }: FoundOrganization) {
  return (
    <Facts
      facts={{
        'Valid tokens': (
          <>
            {count(tokens)}, {lastUsedAt === null ? 'never used' : 'last used '}
            {lastUsedAt !== null && <Ago at={lastUsedAt} />}
          </>
        ),
        Created: <Ago at={createdAt} />,
        Deleted: deletedAt !== null && (
          <>
            <Ago at={deletedAt} />: readers no longer get its clusters; its slug cannot be used again
          </>
        ),
      }}
    />
  );
}

function Rename({ path, name }: { path: string; name: string }) {
  return (
    <DialogButton
      label="Rename"
      title={`Rename ${name}`}
      submit="Rename the organization"
      act={(fields) => act(`${path}/rename`, textFields(fields))}
    >
      <Field label="Name, shown to people; the slug stays" name="name" value={name} isRequired />
      <Reason />
    </DialogButton>
  );
}

interface DeleteProps {
  readonly path: string;
  readonly organization: FoundOrganization;
  /** Receives a message about the deletion. */
  readonly onDone: (text: string) => void;
}

function Delete({ path, organization, onDone }: DeleteProps) {
  const { slug, name, clusters, tokens } = organization;
  const remove = async (fields: FormData) => {
    const gone = await act<{ clusters: number; tokens: number; published: boolean }>(
      `${path}/delete`,
      textFields(fields),
    );
    const later = gone.published
      ? ''
      : ' The cache is down: readers may accept the tokens for up to 10 seconds.';
    onDone(
      `${name} is deleted: ${counted(gone.clusters, 'cluster')} removed, ${counted(gone.tokens, 'token')} revoked.${later}`,
    );
  };
  return (
    <DialogButton
      label="Delete"
      title={`Delete ${name}`}
      submit="Delete the organization"
      isDanger
      act={remove}
    >
      <p>
        Readers will no longer get its clusters ({counted(clusters, 'cluster')}). Its{' '}
        {counted(tokens, 'valid token')} will be revoked. Its slug cannot be used again. This cannot be
        undone.
      </p>
      <Field label={`Type the slug, ${slug}, to confirm`} name="slug" isRequired />
      <Reason isRequired />
    </DialogButton>
  );
}

function Clusters({ slug, place }: { slug: string; place: Place }) {
  const query = queryOf(place, ['sort', 'order', 'offset'], CLUSTERS);
  query.set('organization', slug);
  const answer = useData<FoundClusters>(`/api/clusters?${query}`);
  const { data, isOld } = answer;
  const none = 'No control plane lists a cluster of this organization.';
  return (
    <section aria-label="Clusters">
      <Progress {...answer} />
      {data && <ClusterTable data={data} place={place} isOld={isOld} none={none} isOfOne />}
    </section>
  );
}
