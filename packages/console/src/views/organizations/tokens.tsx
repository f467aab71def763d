/** The tokens of an organization. The value of a token is shown only once, after its creation. */
import { useRef, useState } from 'preact/hooks';
import type {
  MadeToken,
  Published,
  RevokedToken,
  TokenSummary,
  TokensAnswer,
} from '../../../../../src/features/console/routes/answers.ts';
import type { Answer } from '../../lib/data.ts';
import { utc } from '../../lib/format.ts';
import type { Place } from '../../lib/router.ts';
import { Ago, Badge, Progress } from '../../parts/basics.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Table } from '../../parts/table.tsx';
import { Create, type NewToken, Revoke, Rotate } from './token-dialogs.tsx';

interface TokensProps {
  /** The path of the organization's routes. */
  readonly path: string;
  readonly place: Place;
  readonly answer: Answer<TokensAnswer>;
  readonly limit: number;
  readonly mayChange: boolean;
}

export function Tokens({ path, place, answer, limit, mayChange }: TokensProps) {
  const { data, isOld } = answer;
  const [created, setCreated] = useState<NewToken>();
  const [result, setResult] = useState('');
  const onCreated = (token: NewToken) => {
    setResult('');
    setCreated(token);
  };
  const onRevoked = (revoked: Published<RevokedToken>) => {
    setCreated(undefined);
    setResult(revokedText(revoked));
  };
  return (
    <section aria-label="Tokens">
      {mayChange && (
        <p class="action">
          <Create path={path} onCreated={onCreated} />
        </p>
      )}
      {created && <CreatedToken key={created.id} {...created} onDone={() => setCreated(undefined)} />}
      {result !== '' && (
        <p class="done" role="status">
          {result}
        </p>
      )}
      <Progress {...answer} />
      {data?.rows.length === 0 && (
        <p class="calm">The organization has no token, so no reader can use the API for it.</p>
      )}
      {data && data.rows.length > 0 && (
        <Table
          rows={data.rows}
          id={({ id }) => id}
          isOld={isOld}
          columns={[
            [
              'Token',
              ({ id, name }) => (
                <>
                  Token {id}
                  {name !== null && <span class="muted"> {name}</span>}
                </>
              ),
            ],
            ['State', (token) => <State {...token} />],
            ['May read', ({ scopes }) => scopesText(scopes, ', ')],
            ['Last use', ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : <Ago at={lastUsedAt} />)],
            ['Created', ({ createdAt }) => <Ago at={createdAt} />],
            ['Expires', ({ expiresAt }) => (expiresAt === null ? 'never' : utc(expiresAt))],
            mayChange && [
              'Change',
              ({ id, state }) =>
                state === 'good' ? (
                  <span class="action">
                    <Rotate id={id} onCreated={onCreated} /> <Revoke id={id} onRevoked={onRevoked} />
                  </span>
                ) : (
                  '–'
                ),
            ],
          ]}
        />
      )}
      {data && data.total > 0 && <Pager place={place} total={data.total} limit={limit} what="tokens" />}
    </section>
  );
}

function revokedText({ id, wasRevoked, published }: Published<RevokedToken>): string {
  if (wasRevoked) return `Token ${id} was revoked already.`;
  return published
    ? `Token ${id} is revoked: readers refuse it within two seconds.`
    : `Token ${id} is revoked: the cache is down, so readers may accept it for up to 10 seconds.`;
}

const scopesText = (scopes: readonly string[], separator: string): string =>
  scopes.map((scope) => scope.replace(':read', '')).join(separator);

function State({ state, revokedAt }: TokenSummary) {
  return (
    <>
      <Badge tone={state === 'good' ? 'good' : 'note'}>{state}</Badge>
      {revokedAt !== null && (
        <span class="muted">
          {' '}
          <Ago at={revokedAt} />
        </span>
      )}
    </>
  );
}

/** Shows the value of a new token, which is not stored anywhere. */
function CreatedToken({ id, name, token, onDone, ...terms }: NewToken & { onDone: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  const [result, setResult] = useState('');
  const copy = async () => {
    field.current?.select();
    // Without TLS the browser offers a clipboard on localhost only.
    const isCopied = await navigator.clipboard?.writeText(token).then(
      () => true,
      () => false,
    );
    setResult(isCopied ? 'Copied.' : 'Selected: copy it with the keyboard.');
  };
  return (
    <section class="made" aria-label={`Token ${id}`}>
      <p role="status">
        <strong>
          Token {id}
          {name !== null && ` (${name})`} is created. It is shown only once: copy it now.
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
          Done
        </button>
        <span class="muted" role="status">
          {result}
        </span>
      </div>
      <Terms {...terms} />
    </section>
  );
}

function Terms({
  scopes,
  expiresAt,
  old,
  published,
}: Pick<MadeToken, 'scopes' | 'expiresAt' | 'old'> & Published<object>) {
  return (
    <p class="muted">
      It may read {scopesText(scopes, ' and ')},{' '}
      {expiresAt === null ? 'with no expiry' : `until ${utc(expiresAt)}`}.
      {old &&
        ` Token ${old.id} ${old.expiresAt === null ? 'is revoked' : `is valid until ${utc(old.expiresAt)}`}.`}
      {!published && ' The cache is down: it gets the token later.'}
    </p>
  );
}
