/** The audit log: every action of a person, the newest first. */
import { detailsText } from '../../../../src/domain/operator.ts';
import type { AuditAnswer, AuditEntry, AuditTerms } from '../../../../src/features/console/routes/api.ts';
import { useData } from '../lib/data.ts';
import { addressWith, navigate, type Place, queryOf } from '../lib/router.ts';
import { Ago, Choice, Search, Title, Trouble } from '../parts/basics.tsx';

const LIMIT = 50;

export function AuditView({ place }: { place: Place }) {
  const query = queryOf(place, ['by', 'action', 'kind', 'id', 'since', 'before'], LIMIT);
  const { data, error, isOld } = useData<AuditAnswer>(`/api/audit?${query}`);
  const last = data?.rows.at(-1);
  return (
    <>
      <Title text="Audit log">
        <p class="summary">who did what, when, from where and why</p>
      </Title>
      <Trouble text={error} />
      {!error && <Filters place={place} />}
      {data && data.rows.length > 0 && <Rows rows={data.rows} place={place} isOld={isOld} />}
      {data?.rows.length === 0 && <p class="calm">No action is like that.</p>}
      <nav class="pager" aria-label="Pages of the audit log">
        {place.query.has('before') && (
          <a class="button" href={addressWith(place, { before: '' })}>
            Newest
          </a>
        )}
        {data?.hasOlder && last && (
          <a class="button" href={addressWith(place, { before: String(last.id) })}>
            Older
          </a>
        )}
      </nav>
      {!data && !error && <p class="loading">Asking the database …</p>}
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
  const value = (name: string) => place.query.get(name) ?? '';
  const set = (changes: Record<string, string>) =>
    navigate(addressWith(place, { before: '', ...changes }), true);
  const since = value('since');
  const { people = [], actions = [], kinds = [] } = data ?? {};
  return (
    <search class="filters">
      <Choice
        label="By"
        value={value('by')}
        options={choices('everybody', people, value('by'))}
        onChoose={(by) => set({ by })}
      />
      <Choice
        label="Action"
        value={value('action')}
        options={choices('all', actions, value('action'))}
        onChoose={(action) => set({ action })}
      />
      <Choice
        label="About"
        value={value('kind')}
        options={choices('anything', kinds, value('kind'))}
        onChoose={(kind) => set({ kind, id: '' })}
      />
      {value('kind') !== '' && (
        <Search label={`Which ${value('kind')}`} value={value('id')} onSearch={(id) => set({ id })} />
      )}
      <Choice
        label="Since"
        value={since}
        options={[...SINCE, ...(SINCE.some(([known]) => known === since) ? [] : [[since, since] as const])]}
        onChoose={(next) => set({ since: next })}
      />
    </search>
  );
}

/** All of them, those that are known, and what the address asks for, known or not. */
function choices(all: string, known: readonly string[], asked: string) {
  const terms = asked === '' || known.includes(asked) ? known : [asked, ...known];
  return [['', all] as const, ...terms.map((term) => [term, term] as const)];
}

function Rows({ rows, place, isOld }: { rows: readonly AuditEntry[]; place: Place; isOld: boolean }) {
  return (
    <table class={`cards audit ${isOld ? 'old' : ''}`}>
      <thead>
        <tr>
          <th scope="col">Action</th>
          <th scope="col">About</th>
          <th scope="col">By</th>
          <th scope="col">When, UTC</th>
          <th scope="col">From</th>
          <th scope="col">Why</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((entry) => (
          <Row key={entry.id} {...entry} place={place} />
        ))}
      </tbody>
    </table>
  );
}

const WAYS: Readonly<Record<AuditEntry['how'], string>> = {
  cli: 'command line',
  console: 'console',
  token: 'program',
  oidc: 'OpenID Connect',
};

function Row({ place, ...entry }: AuditEntry & { place: Place }) {
  const { at, by, how, tokenId, address, action, reason, details } = entry;
  const told = detailsText(details);
  return (
    <tr>
      <th scope="row" data-label="Action">
        <span>
          {action}
          {told !== '' && <div class="muted small">{told}</div>}
        </span>
      </th>
      <td data-label="About">
        <Subject {...entry} />
      </td>
      <td data-label="By">
        <a href={addressWith(place, { by, before: '' })}>{by}</a>
      </td>
      <td data-label="When, UTC">
        <span>
          {at.slice(0, 10)} {at.slice(11, 19)}
          <div class="muted small">
            <Ago at={at} />
          </div>
        </span>
      </td>
      <td data-label="From">
        <span>
          {WAYS[how]}
          {tokenId !== null && `, token ${tokenId}`}
          {address !== null && address !== by && <div class="muted small">{address}</div>}
        </span>
      </td>
      <td data-label="Why">{reason ?? '–'}</td>
    </tr>
  );
}

/** The way to the thing that it is about, where there is one. */
function Subject({ subject: { kind, id }, organization }: AuditEntry) {
  const text = `${kind} ${id}`;
  const address = addressOf(kind, id, organization);
  return address === undefined ? text : <a href={address}>{text}</a>;
}

function addressOf(kind: string, id: string, organization: string | null): string | undefined {
  const whose = organization === null ? undefined : `/organizations/${encodeURIComponent(organization)}`;
  switch (kind) {
    case 'organization':
      return `/organizations/${encodeURIComponent(id)}`;
    case 'token':
      return whose;
    case 'user':
      return whose && `${whose}?show=people`;
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
