/** Where each setting of a source comes from, and what an operator does with the source as a whole. */
import { useState } from 'preact/hooks';
import { originInWords } from '../../../../src/domain/source-setting.ts';
import type {
  Retired,
  RetirementAnswer,
  ShownSetting,
  SourceAnswer,
  Switched,
} from '../../../../src/features/console/routes/api.ts';
import { act, useData } from '../lib/data.ts';
import { count, counted } from '../lib/format.ts';
import { Ago, Trouble } from '../parts/basics.tsx';

interface SettingsProps {
  readonly path: string;
  readonly answer: SourceAnswer;
}

export function Settings({ path, answer: { source } }: SettingsProps) {
  return (
    <>
      {source.retiredAt === null && <Switch path={path} source={source} />}
      {!source.configured && <Retire path={path} source={source} />}
      {source.configured && <Origins path={path} />}
    </>
  );
}

type Source = SourceAnswer['source'];

/** Disables the source, or enables it; always with a reason. */
function Switch({ path, source: { id, disabled } }: { path: string; source: Source }) {
  const does = disabled === null ? 'disable' : 'enable';
  return (
    <section aria-labelledby="switch">
      <h2 id="switch">{disabled === null ? 'Disable it' : 'Enable it'}</h2>
      {disabled !== null && (
        <p>
          Disabled by {disabled.by}, <Ago at={disabled.at} />
          {disabled.reason !== null && <span class="muted">: “{disabled.reason}”</span>}
        </p>
      )}
      <p class="muted">
        {disabled === null
          ? 'No schedule, watch or command reads a disabled source. What it has published stays, and its age is told.'
          : 'A slot that has passed meanwhile is made up for within a minute.'}
      </p>
      <Act
        key={does}
        name={does}
        label={disabled === null ? `Disable ${id}` : `Enable ${id}`}
        isDanger={disabled === null}
        send={(reason) => act<Switched>(`${path}/${does}`, { reason })}
        told={() => (disabled === null ? `${id} is disabled.` : `${id} is enabled.`)}
      />
    </section>
  );
}

/** Takes what a source that is not configured any more has published out of publication. */
function Retire({ path, source: { id } }: { path: string; source: Source }) {
  const { data, error } = useData<RetirementAnswer>(`${path}/retirement`);
  const known = data?.places.reduce((sum, place) => sum + place.published, 0) ?? 0;
  const isDone =
    data !== undefined && data.retiredAt !== null && data.places.length === 0 && data.rates === 0;
  const what =
    data?.kind === 'rates'
      ? counted(data.rates, 'exchange rate')
      : `${count(known)} ${data?.kind === 'clusters' ? 'clusters' : 'machines'}`;
  return (
    <section aria-labelledby="retire">
      <h2 id="retire">Retire it</h2>
      <Trouble text={error} />
      {isDone && <p class="calm">It is retired: nothing of it is published.</p>}
      {data && !isDone && (
        <>
          <p>
            {what} would go out of publication. Ids, prices and their history stay.{' '}
            <span class="muted">
              Last run <Ago at={data.lastRunAt} />. A worker that still has it configured brings it back.
            </span>
          </p>
          <ul class="plain card">
            {data.places.slice(0, PLACES).map(({ place, published }) => (
              <li key={place}>
                {place}: {count(published)}
              </li>
            ))}
            {data.places.length > PLACES && <li>… {count(data.places.length - PLACES)} more</li>}
          </ul>
          <Act
            name="retire"
            label={`Retire ${id}`}
            isDanger
            typed={id}
            send={(reason, confirm) => act<Retired>(`${path}/retire`, { reason, confirm })}
            told={({ published }) =>
              `${id} is retired${published ? '' : '; the cache is away and gets it later'}.`
            }
          />
        </>
      )}
    </section>
  );
}

/** Places that are listed by name. */
const PLACES = 20;

interface ActProps<T> {
  readonly name: string;
  readonly label: string;
  readonly isDanger?: boolean;
  /** What has to be typed once more; nothing unless given. */
  readonly typed?: string;
  readonly send: (reason: string, confirm: string) => Promise<T>;
  readonly told: (done: T) => string;
}

/** A reason, a confirmation where one is asked for, and the button. */
function Act<T>({ name, label, isDanger = false, typed, send, told }: ActProps<T>) {
  const [reason, setReason] = useState('');
  const [confirm, setConfirm] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  const [done, setDone] = useState('');
  const submit = async () => {
    if (reason.trim() === '') {
      setError('Say why, for the record.');
      document.getElementById(`${name}-reason`)?.focus();
      return;
    }
    setBusy(true);
    setError(undefined);
    try {
      setDone(told(await send(reason, confirm)));
      setReason('');
      setConfirm('');
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
    }
    setBusy(false);
  };
  return (
    <form
      class="decide card"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <label class="field wide">
        <span>Reason, kept with your name and the time</span>
        <input
          id={`${name}-reason`}
          value={reason}
          maxLength={500}
          autocomplete="off"
          aria-invalid={error !== undefined}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </label>
      {typed !== undefined && (
        <label class="field wide">
          <span>Type “{typed}” to confirm</span>
          <input
            value={confirm}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setConfirm(event.currentTarget.value)}
          />
        </label>
      )}
      <div class="buttons">
        <button
          type="submit"
          class={isDanger ? 'danger' : 'main'}
          disabled={busy || (typed !== undefined && confirm !== typed)}
        >
          {busy ? 'Working …' : label}
        </button>
        <span role="status">{done}</span>
      </div>
      <Trouble text={error} />
    </form>
  );
}

function Origins({ path }: { path: string }) {
  const { data, error } = useData<readonly ShownSetting[]>(`${path}/settings`);
  const isOwn = ({ name, from }: ShownSetting) => !name.startsWith('limits.') || from !== 'default';
  const own = data?.filter(isOwn) ?? [];
  const defaults = data?.filter((setting) => !isOwn(setting)) ?? [];
  return (
    <section aria-labelledby="settings">
      <h2 id="settings">Where each setting comes from</h2>
      <Trouble text={error} />
      {data && <SettingsTable settings={own} />}
      {defaults.length > 0 && (
        <details>
          <summary>{counted(defaults.length, 'limit')} of the guards by default</summary>
          <SettingsTable settings={defaults} />
        </details>
      )}
    </section>
  );
}

function SettingsTable({ settings }: { settings: readonly ShownSetting[] }) {
  return (
    <table class="cards">
      <thead>
        <tr>
          <th scope="col">Setting</th>
          <th scope="col">Value</th>
          <th scope="col">From</th>
        </tr>
      </thead>
      <tbody>
        {settings.map((setting) => (
          <tr key={setting.name}>
            <th scope="row" data-label="Setting">
              {setting.name}
            </th>
            <td data-label="Value">{setting.value ?? '–'}</td>
            <td data-label="From">{originInWords(setting)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
