/** The audit log: all actions of people, newest first. */
import { detailsText } from '../../../../src/domain/operator.ts';
import type { AuditAnswer, AuditEntry, AuditTerms } from '../../../../src/features/console/routes/answers.ts';
import { useData } from '../lib/data.ts';
import { addressWith, filtersOf, type Place, queryOf } from '../lib/router.ts';
import { Ago, Progress, Title } from '../parts/basics.tsx';
import { allOf, Choice, Search } from '../parts/filters.tsx';
import { Links } from '../parts/pager.tsx';
import { Table } from '../parts/table.tsx';

const LIMIT = 50;

export function AuditView({ place }: { place: Place }) {
  const query = queryOf(place, ['by', 'action', 'kind', 'id', 'since', 'before'], LIMIT);
  const answer = useData<AuditAnswer>(`/api/audit?${query}`);
  const { data, error } = answer;
  const last = data?.rows.at(-1);
  return (
    <>
      <Title text="Audit log">
        <p class="summary">who did what, when, from where and why</p>
      </Title>
      <Progress {...answer} />
      {!error && <Filters place={place} />}
      {data && data.rows.length > 0 && <Entries rows={data.rows} place={place} isOld={answer.isOld} />}
      {data?.rows.length === 0 && <p class="calm">No action matches.</p>}
      <Links
        label="Pages of the audit log"
        links={[
          place.query.has('before') && ['Newest', addressWith(place, { before: '' })],
          data?.hasOlder && last && ['Older', addressWith(place, { before: String(last.id) })],
        ]}
      />
    </>
  );
}

const SINCE = [
  ['', 'all'],
  ['1h', 'the last hour'],
  ['24h', 'the last day'],
  ['7d', 'the last week'],
  ['30d', 'the last 30 days'],
] as const;

function Filters({ place }: { place: Place }) {
  const { data } = useData<AuditTerms>('/api/audit-terms');
  const { value, set } = filtersOf(place);
  const change = (changes: Record<string, string>) => set({ before: '', ...changes });
  const { people = [], actions = [], kinds = [] } = data ?? {};
  return (
    <search class="filters">
      <Choice
        label="By"
        value={value('by')}
        options={allOf(people, 'anyone')}
        onChoose={(by) => change({ by })}
      />
      <Choice
        label="Action"
        value={value('action')}
        options={allOf(actions)}
        onChoose={(action) => change({ action })}
      />
      <Choice
        label="About"
        value={value('kind')}
        options={allOf(kinds, 'anything')}
        onChoose={(kind) => change({ kind, id: '' })}
      />
      {value('kind') !== '' && (
        <Search label={`Which ${value('kind')}`} value={value('id')} onSearch={(id) => change({ id })} />
      )}
      <Choice label="Since" value={value('since')} options={SINCE} onChoose={(since) => change({ since })} />
    </search>
  );
}

const WAYS: Readonly<Record<AuditEntry['how'], string>> = {
  cli: 'command line',
  console: 'console',
  token: 'program',
  oidc: 'OpenID Connect',
};

interface EntriesProps {
  readonly rows: readonly AuditEntry[];
  readonly place: Place;
  readonly isOld: boolean;
}

function Entries({ rows, place, isOld }: EntriesProps) {
  return (
    <Table
      rows={rows}
      id={({ id }) => id}
      isOld={isOld}
      classes="audit"
      columns={[
        ['Action', (entry) => <Action {...entry} />],
        ['About', (entry) => <Subject {...entry} />],
        ['By', ({ by }) => <a href={addressWith(place, { by, before: '' })}>{by}</a>],
        ['When, UTC', ({ at }) => <When at={at} />],
        ['From', (entry) => <From {...entry} />],
        ['Why', ({ reason }) => reason ?? '–'],
      ]}
    />
  );
}

function Action({ action, details }: AuditEntry) {
  const text = detailsText(details);
  return (
    <span>
      {action}
      {text !== '' && <div class="muted small">{text}</div>}
    </span>
  );
}

function When({ at }: { at: string }) {
  return (
    <>
      {at.slice(0, 10)} {at.slice(11, 19)}
      <div class="muted small">
        <Ago at={at} />
      </div>
    </>
  );
}

function From({ how, tokenId, address, by }: AuditEntry) {
  return (
    <>
      {WAYS[how]}
      {tokenId !== null && `, token ${tokenId}`}
      {address !== null && address !== by && <div class="muted small">{address}</div>}
    </>
  );
}

/** Links to the page of the subject, if it has one. */
function Subject({ subject: { kind, id }, organization }: AuditEntry) {
  const text = `${kind} ${id}`;
  const address = addressOf(kind, id, organization);
  return address === undefined ? text : <a href={address}>{text}</a>;
}

function addressOf(kind: string, id: string, organization: string | null): string | undefined {
  const owner = organization === null ? undefined : `/organizations/${encodeURIComponent(organization)}`;
  switch (kind) {
    case 'organization':
      return `/organizations/${encodeURIComponent(id)}`;
    case 'token':
      return owner;
    case 'user':
      return owner && `${owner}?show=people`;
    case 'batch':
      return `/held/${encodeURIComponent(id)}`;
    case 'source':
      return `/sources/${encodeURIComponent(id)}`;
    case 'queue':
      return `/queues/queue/${encodeURIComponent(id)}`;
    default:
      return undefined;
  }
}
