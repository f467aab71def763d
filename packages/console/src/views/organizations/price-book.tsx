/** The own prices of an organization: list, add and end entries. */
import { useState } from 'preact/hooks';
import { PRICE_TERMS } from '../../../../../src/domain/prices/term.ts';
import type { MachinesAnswer, PlacesAnswer } from '../../../../../src/features/console/routes/answers.ts';
import type {
  AddedEntry,
  EndedEntry,
  EntryPreview,
  GivenEntry,
  PriceBookAnswer,
  ShownEntry,
} from '../../../../../src/features/price-book/answers.ts';
import { act, useData, useDebounced } from '../../lib/data.ts';
import { count, counted, utc } from '../../lib/format.ts';
import { addressWith, type Place } from '../../lib/router.ts';
import { Badge, Progress, type Tone } from '../../parts/basics.tsx';
import { DialogButton, Field, Reason, Select, textFields } from '../../parts/form-dialog.tsx';
import { Table } from '../../parts/table.tsx';
import { TERM_NAMES } from '../machines/terms.tsx';
import { sumText } from './costs.tsx';

interface PriceBookProps {
  /** The path of the organization's routes. */
  readonly path: string;
  readonly place: Place;
  readonly mayChange: boolean;
}

export function PriceBook({ path, place, mayChange }: PriceBookProps) {
  const withEnded = place.query.get('ended') === 'yes';
  const answer = useData<PriceBookAnswer>(`${path}/price-book${withEnded ? '?ended=yes' : ''}`);
  const { data } = answer;
  const [result, setResult] = useState('');
  return (
    <section aria-label="Own prices">
      {mayChange && (
        <p class="action">
          <Add path={path} currency={data?.currency ?? ''} onDone={setResult} />
        </p>
      )}
      {result !== '' && (
        <p class="done" role="status">
          {result}
        </p>
      )}
      <Progress {...answer} />
      {data?.entries.length === 0 && (
        <p class="calm">
          {withEnded ? 'The organization never had own prices' : 'The organization has no own prices'}, so all
          answers have list prices.{' '}
          {mayChange ? 'Add an entry for a discount or a fixed price.' : 'An admin can add entries.'}
        </p>
      )}
      {data && data.entries.length > 0 && (
        <Entries data={data} path={path} mayChange={mayChange} isOld={answer.isOld} onDone={setResult} />
      )}
      <p class="muted below">
        The most specific entry gives the price: machine, family, region, provider, all.{' '}
        <a href={addressWith(place, { ended: withEnded ? '' : 'yes' })}>
          {withEnded ? 'Hide ended entries' : 'Show ended entries too'}
        </a>
      </p>
    </section>
  );
}

const TONES: Readonly<Record<ShownEntry['state'], Tone>> = {
  applies: 'good',
  'begins later': 'warn',
  ended: 'note',
};

interface EntriesProps {
  readonly data: PriceBookAnswer;
  readonly path: string;
  readonly mayChange: boolean;
  readonly isOld: boolean;
  readonly onDone: (text: string) => void;
}

function Entries({ data, path, mayChange, isOld, onDone }: EntriesProps) {
  return (
    <Table
      rows={data.entries}
      id={({ id }) => id}
      isOld={isOld}
      columns={[
        ['For', selectorText],
        ['Price', (entry) => priceText(entry, data.currency ?? ''), 'number'],
        ['State', ({ state }) => <Badge tone={TONES[state]}>{state}</Badge>],
        ['From', ({ from }) => utc(from)],
        ['Until', ({ to }) => (to === undefined ? 'without end' : utc(to))],
        ['Entry', ({ id }) => id, 'number'],
        mayChange && [
          'Change',
          (entry) => (entry.state === 'ended' ? '–' : <End entry={entry} path={path} onDone={onDone} />),
        ],
      ]}
    />
  );
}

/** `cx22@fsn1, spot`; `every machine` */
function selectorText({ provider, region, family, machine, term }: GivenEntry): string {
  const place = [provider, region].filter(Boolean).join(', ');
  const what = machine ?? (family === undefined ? undefined : `names that begin with ${family}`);
  const named = [what, place].filter(Boolean).join(' of ');
  const terms: Readonly<Record<string, string>> = TERM_NAMES;
  return `${named === '' ? 'every machine' : named}${term === undefined ? '' : `, ${terms[term] ?? term}`}`;
}

const priceText = ({ discount, price }: GivenEntry, currency: string): string =>
  discount === undefined ? `${price} ${currency} per minute` : `${discount} % off`;

interface ChangeProps {
  readonly path: string;
  readonly onDone: (text: string) => void;
}

const laterText = (published: boolean): string =>
  published ? '' : ' The cache is down: readers get the change later.';

function Add({ path, currency, onDone }: ChangeProps & { currency: string }) {
  const [kind, setKind] = useState('discount');
  const [given, setGiven] = useState<Readonly<Record<string, string>>>({});
  const choose = (next: string) => {
    setKind(next);
    setGiven({});
  };
  const show = (fields: FormData) => {
    const { kind: _, reason: __, ...entry } = textFields(fields);
    setGiven(entry);
  };
  const add = async (fields: FormData) => {
    const { kind: _, ...given } = textFields(fields);
    const { entry, published } = await act<AddedEntry>(`${path}/price-book`, given);
    onDone(`Entry ${entry.id} is added: ${selectorText(entry)}.${laterText(published)}`);
    choose('discount');
  };
  return (
    <DialogButton
      label="Add a price"
      title="Add a price"
      submit="Add the entry"
      isMain
      act={add}
      onInput={show}
      onClose={() => choose('discount')}
    >
      <Select
        label="Price"
        name="kind"
        byDefault="discount"
        options={[
          ['discount', 'a discount on the list price'],
          ['price', 'a fixed price of one machine'],
        ]}
        onChoose={choose}
      />
      {kind === 'discount' ? (
        <Field label="Percent off the list price" name="discount" isRequired />
      ) : (
        <Field label={`${currency} per minute`} name="price" isRequired />
      )}
      <Selector kind={kind} />
      <Select
        label="Term"
        name="term"
        byDefault=""
        options={[['', 'every term'], ...PRICE_TERMS.map((term) => [term, TERM_NAMES[term]] as const)]}
      />
      <Field label="From, a date or a time in UTC; empty for now" name="from" />
      <Field label="Until, a date or a time in UTC; empty for no end" name="to" />
      <Preview path={path} kind={kind} given={given} />
      <Reason />
    </DialogButton>
  );
}

interface PreviewProps {
  readonly path: string;
  readonly kind: string;
  readonly given: GivenEntry;
}

/** Shows what the entry of the dialog would change. */
function Preview({ path, kind, given }: PreviewProps) {
  const isReady =
    kind === 'discount'
      ? given.discount !== undefined
      : given.price !== undefined && given.machine !== undefined;
  const address = isReady ? `${path}/price-book/preview?${new URLSearchParams({ ...given })}` : '';
  const settled = useDebounced(address);
  return (
    <div class="preview" role="status" aria-label="Preview">
      {address === '' || settled === '' ? (
        <p class="muted">
          Give {kind === 'discount' ? 'a percentage' : 'a price and a machine'} to see what the entry changes.
        </p>
      ) : (
        <Previewed address={settled} term={given.term} />
      )}
    </div>
  );
}

function Previewed({ address, term }: { address: string; term: string | undefined }) {
  const { data, error, isOld } = useData<EntryPreview>(address);
  if (error !== undefined) return <p class="trouble">{error}</p>;
  if (data === undefined) return <p class="muted">Computing …</p>;
  const { before, after, affected, clusters, machines, currency, at, isLater } = data;
  return (
    <div class={isOld ? 'old' : ''}>
      <p>
        <strong>
          {sumText(after)} {currency}
        </strong>{' '}
        per month instead of {sumText(before)}
        {isLater && `, from ${utc(at)}`}
      </p>
      <p class="muted">
        Changes the cost of {count(affected)} of {counted(clusters, 'cluster')}, and selects{' '}
        {counted(machines, 'machine')}.
        {term !== undefined &&
          term !== 'on_demand' &&
          ' Costs here are on demand: a price of another term does not change them.'}
      </p>
    </div>
  );
}

/** Machines that the browser offers. */
const OFFERED = 30;

/** The fields that select machines, with suggestions from the catalogue. */
function Selector({ kind }: { kind: string }) {
  const [provider, setProvider] = useState('');
  const [machine, setMachine] = useState('');
  const providers = useData<PlacesAnswer>('/api/places').data?.providers ?? [];
  const chosen = providers.filter(({ name }) => name.toLowerCase() === provider.trim().toLowerCase());
  const regions = (chosen.length > 0 ? chosen : providers).flatMap((each) => each.regions);
  const query = new URLSearchParams({
    q: useDebounced(machine).split('@')[0] ?? '',
    sort: 'region',
    limit: String(OFFERED),
  });
  const found = useData<MachinesAnswer>(`/api/machines?${query}`).data?.rows ?? [];
  const isDiscount = kind === 'discount';
  return (
    <>
      {isDiscount && (
        <Field
          label="Provider; empty for every one"
          name="provider"
          suggestions={providers.map(({ name }) => name)}
          onInput={setProvider}
        />
      )}
      {isDiscount && (
        <Field
          label="Region, e.g. fsn1; empty for every one"
          name="region"
          suggestions={[...new Set(regions)].sort()}
        />
      )}
      {isDiscount && <Field label="Family, e.g. m5.; empty for all names" name="family" />}
      <Field
        label={isDiscount ? 'Machine, e.g. cx22@fsn1; empty for all' : 'Machine, e.g. cx22@fsn1'}
        name="machine"
        isRequired={!isDiscount}
        suggestions={found.map(({ name, region }) => `${name}@${region}`)}
        onInput={setMachine}
      />
    </>
  );
}

function End({ entry, path, onDone }: ChangeProps & { entry: ShownEntry }) {
  const { id } = entry;
  const end = async (fields: FormData) => {
    const { to, published } = await act<EndedEntry>(`${path}/price-book/${id}/end`, textFields(fields));
    const done =
      to === null ? `Entry ${id} had not begun, and is removed.` : `Entry ${id} ends at ${utc(to)}.`;
    onDone(`${done}${laterText(published)}`);
  };
  return (
    <span class="action">
      <DialogButton
        label="End"
        ariaLabel={`End entry ${id}`}
        title={`End entry ${id}`}
        submit="End the entry"
        isDanger
        act={end}
      >
        <p>{selectorText(entry)}. Past prices stay: an ended entry still explains past costs.</p>
        <Field label="At, a date or a time in UTC; empty for now" name="at" />
        <Reason />
      </DialogButton>
    </span>
  );
}
