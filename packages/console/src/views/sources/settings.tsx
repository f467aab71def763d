/** The settings of a source with their origins, and buttons to disable, enable or retire the source. */
import { useState } from 'preact/hooks';
import { originInWords } from '../../../../../src/domain/source.ts';
import type {
  Retired,
  RetirementAnswer,
  ShownSetting,
  SourceAnswer,
  Switched,
} from '../../../../../src/features/console/routes/answers.ts';
import { act, useData } from '../../lib/data.ts';
import { count, counted } from '../../lib/format.ts';
import { Ago, Progress } from '../../parts/basics.tsx';
import { DialogButton, Field, Reason, textFields } from '../../parts/form-dialog.tsx';
import { Table } from '../../parts/table.tsx';

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

/** Shows whether the source is disabled, and the button that changes it. */
function Switch({ path, source: { id, disabled } }: { path: string; source: Source }) {
  const isEnabled = disabled === null;
  const action = isEnabled ? 'disable' : 'enable';
  return (
    <section aria-labelledby="switch">
      <h2 id="switch">{isEnabled ? 'Disable the source' : 'Enable the source'}</h2>
      {!isEnabled && (
        <p>
          Disabled by {disabled.by}, <Ago at={disabled.at} />
          {disabled.reason !== null && <span class="muted">: “{disabled.reason}”</span>}
        </p>
      )}
      <p class="muted">
        {isEnabled
          ? 'No schedule, watch or command reads a disabled source. Its data stays published, and its age is shown.'
          : 'If a slot was missed, a worker runs the source within a minute.'}
      </p>
      <DialogButton
        key={action}
        label={isEnabled ? 'Disable …' : 'Enable …'}
        title={`${isEnabled ? 'Disable' : 'Enable'} ${id}`}
        submit={`${isEnabled ? 'Disable' : 'Enable'} ${id}`}
        isDanger={isEnabled}
        act={(fields) => act<Switched>(`${path}/${action}`, textFields(fields))}
      >
        <Reason isRequired />
      </DialogButton>
    </section>
  );
}

/** Maximum number of places to list. */
const MAX_PLACES = 20;

/** The button that unpublishes the data of a source that is no longer configured. */
function Retire({ path, source: { id } }: { path: string; source: Source }) {
  const answer = useData<RetirementAnswer>(`${path}/retirement`);
  const { data } = answer;
  const [retired, setRetired] = useState<Retired>();
  const isDone =
    data !== undefined && data.retiredAt !== null && data.places.length === 0 && data.rates === 0;
  return (
    <section aria-labelledby="retire">
      <h2 id="retire">Retire the source</h2>
      <Progress {...answer} />
      {isDone && (
        <p class="calm">
          The source is retired: none of its data is published.
          {retired?.published === false && ' The cache is down and is updated later.'}
        </p>
      )}
      {data && !isDone && (
        <>
          <Published {...data} />
          <DialogButton
            label="Retire …"
            title={`Retire ${id}`}
            submit={`Retire ${id}`}
            isDanger
            act={async (fields) => setRetired(await act<Retired>(`${path}/retire`, textFields(fields)))}
          >
            <Field label={`Type ${id} to confirm`} name="confirm" isRequired />
            <Reason isRequired />
          </DialogButton>
        </>
      )}
    </section>
  );
}

/** Lists the data that a retirement unpublishes. */
function Published({ kind, counted: noun, rates, places, lastRunAt }: RetirementAnswer) {
  const rows = places.reduce((sum, place) => sum + place.published, 0);
  const what = kind === 'rates' ? counted(rates, 'exchange rate') : `${count(rows)} ${noun}`;
  return (
    <>
      <p>
        This unpublishes {what}. Ids, prices and their history stay.{' '}
        <span class="muted">
          Last run <Ago at={lastRunAt} />. A worker that still has the source in its configuration publishes
          it again.
        </span>
      </p>
      <ul class="plain card">
        {places.slice(0, MAX_PLACES).map(({ place, published }) => (
          <li key={place}>
            {place}: {count(published)}
          </li>
        ))}
        {places.length > MAX_PLACES && <li>… {count(places.length - MAX_PLACES)} more</li>}
      </ul>
    </>
  );
}

function Origins({ path }: { path: string }) {
  const answer = useData<readonly ShownSetting[]>(`${path}/settings`);
  const { data } = answer;
  const isDefaultLimit = ({ name, from }: ShownSetting) => name.startsWith('limits.') && from === 'default';
  const defaults = data?.filter(isDefaultLimit) ?? [];
  return (
    <section aria-labelledby="settings">
      <h2 id="settings">Settings and their origins</h2>
      <Progress {...answer} />
      {data && <SettingsTable settings={data.filter((setting) => !isDefaultLimit(setting))} />}
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
    <Table
      rows={settings}
      id={({ name }) => name}
      columns={[
        ['Setting', ({ name }) => name],
        ['Value', ({ value }) => value ?? '–'],
        ['From', originInWords],
      ]}
    />
  );
}
