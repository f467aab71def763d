/** The tokens of an organization. A new one is shown once, by the page that made it, and is kept nowhere. */
import { useRef, useState } from 'preact/hooks';
import type {
  MadeToken,
  Published,
  RevokedToken,
  TokenSummary,
  TokensAnswer,
} from '../../../../src/features/console/routes/api.ts';
import type { Asked } from '../lib/data.ts';
import { utc } from '../lib/format.ts';
import type { Place } from '../lib/router.ts';
import { Ago, Badge, type Tone, Trouble } from '../parts/basics.tsx';
import { Pager } from '../parts/pager.tsx';
import { Create, Revoke, Rotate } from './tokens/dialogs.tsx';

interface TokensProps {
  /** Of the organization's routes. */
  readonly path: string;
  readonly place: Place;
  readonly asked: Asked<TokensAnswer>;
  readonly limit: number;
  readonly mayChange: boolean;
}

type Question = { readonly action: 'create' } | { readonly action: 'rotate' | 'revoke'; readonly id: number };

export function Tokens({ path, place, asked, limit, mayChange }: TokensProps) {
  const { data, error, isOld } = asked;
  const [question, setQuestion] = useState<Question>();
  const [made, setMade] = useState<Published<MadeToken>>();
  const [told, setTold] = useState('');
  const close = () => setQuestion(undefined);
  const onMade = (token: Published<MadeToken>) => {
    setTold('');
    setMade(token);
  };
  const onRevoked = ({ id, wasRevoked, published }: Published<RevokedToken>) => {
    setMade(undefined);
    const later = published
      ? 'readers refuse it within a second'
      : 'the cache is away, so readers may accept it for up to 10 seconds';
    setTold(wasRevoked ? `Token ${id} was revoked already.` : `Token ${id} is revoked: ${later}.`);
  };
  return (
    <section aria-label="Tokens">
      {mayChange && (
        <p class="action">
          <button type="button" class="main" onClick={() => setQuestion({ action: 'create' })}>
            Create a token
          </button>
        </p>
      )}
      {made && <Made key={made.id} {...made} onDone={() => setMade(undefined)} />}
      {told !== '' && (
        <p class="done" role="status">
          {told}
        </p>
      )}
      <Trouble text={error} />
      {data?.rows.length === 0 && <p class="calm">It has no token, so nobody can read in its name.</p>}
      {data && data.rows.length > 0 && (
        <table class={`cards ${isOld ? 'old' : ''}`}>
          <thead>
            <tr>
              <th scope="col">Token</th>
              <th scope="col">State</th>
              <th scope="col">May read</th>
              <th scope="col">Last use</th>
              <th scope="col">Made</th>
              <th scope="col">Expires</th>
              {mayChange && <th scope="col">Change</th>}
            </tr>
          </thead>
          <tbody>
            {data.rows.map((token) => (
              <TokenRow key={token.id} token={token} mayChange={mayChange} ask={setQuestion} />
            ))}
          </tbody>
        </table>
      )}
      {data && data.total > 0 && <Pager place={place} total={data.total} limit={limit} what="tokens" />}
      {question?.action === 'create' && <Create path={path} onMade={onMade} onClose={close} />}
      {question?.action === 'rotate' && <Rotate id={question.id} onMade={onMade} onClose={close} />}
      {question?.action === 'revoke' && <Revoke id={question.id} onRevoked={onRevoked} onClose={close} />}
    </section>
  );
}

const TONES: Readonly<Record<TokenSummary['state'], Tone>> = {
  good: 'good',
  expired: 'note',
  revoked: 'note',
};

interface TokenRowProps {
  readonly token: TokenSummary;
  readonly mayChange: boolean;
  readonly ask: (question: Question) => void;
}

function TokenRow({ token, mayChange, ask }: TokenRowProps) {
  const { id, name, state, scopes, lastUsedAt, createdAt, expiresAt, revokedAt } = token;
  return (
    <tr>
      <th scope="row" data-label="Token">
        Token {id}
        {name !== null && <span class="muted"> {name}</span>}
      </th>
      <td data-label="State">
        <span>
          <Badge tone={TONES[state]}>{state}</Badge>
          {revokedAt !== null && (
            <span class="muted">
              {' '}
              <Ago at={revokedAt} />
            </span>
          )}
        </span>
      </td>
      <td data-label="May read">{scopes.map((scope) => scope.replace(':read', '')).join(', ')}</td>
      <td data-label="Last use">{lastUsedAt === null ? 'never' : <Ago at={lastUsedAt} />}</td>
      <td data-label="Made">
        <Ago at={createdAt} />
      </td>
      <td data-label="Expires">{expiresAt === null ? 'never' : utc(expiresAt)}</td>
      {mayChange && (
        <td data-label="Change">
          {state === 'good' ? (
            <span class="action">
              <button
                type="button"
                aria-label={`Rotate token ${id}`}
                onClick={() => ask({ action: 'rotate', id })}
              >
                Rotate
              </button>{' '}
              <button
                type="button"
                class="danger"
                aria-label={`Revoke token ${id}`}
                onClick={() => ask({ action: 'revoke', id })}
              >
                Revoke
              </button>
            </span>
          ) : (
            '–'
          )}
        </td>
      )}
    </tr>
  );
}

/** The one place where a token can be seen. It is gone with this page. */
function Made({
  id,
  name,
  token,
  scopes,
  expiresAt,
  old,
  published,
  onDone,
}: Published<MadeToken> & { onDone: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  const [told, setTold] = useState('');
  const copy = async () => {
    field.current?.select();
    // Pages that do not come by TLS or from this machine have no clipboard.
    await navigator.clipboard?.writeText(token).then(
      () => setTold('Copied.'),
      () => setTold('Selected: copy it by the keyboard.'),
    );
    if (navigator.clipboard === undefined) setTold('Selected: copy it by the keyboard.');
  };
  return (
    <section class="made" aria-label={`Token ${id}`}>
      <p role="status">
        <strong>
          Token {id}
          {name !== null && ` (${name})`} is made. This is the only time that it is shown: copy it now.
        </strong>
      </p>
      <div class="buttons">
        <input
          ref={field}
          class="secret"
          readOnly
          value={token}
          aria-label="The token"
          autocomplete="off"
          spellcheck={false}
          onFocus={(event) => event.currentTarget.select()}
        />
        <button type="button" class="main" onClick={() => void copy()}>
          Copy
        </button>
        <button type="button" onClick={onDone}>
          I have it
        </button>
        <span class="muted" role="status">
          {told}
        </span>
      </div>
      <p class="muted">
        It may read {scopes.map((scope) => scope.replace(':read', '')).join(' and ')},{' '}
        {expiresAt === null ? 'without an expiry' : `until ${utc(expiresAt)}`}.
        {old &&
          ` Token ${old.id} ${old.expiresAt === null ? 'is revoked' : `is good until ${utc(old.expiresAt)}`}.`}
        {!published && ' The cache is away: readers hear of it a little later.'}
      </p>
    </section>
  );
}
