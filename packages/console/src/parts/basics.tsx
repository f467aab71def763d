/** Small parts that every view is made of. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ShownSource } from '../../../../src/features/console/routes/api.ts';
import { ago, ahead, span, utc } from '../lib/format.ts';
import { useNow } from '../lib/live.ts';

/** How urgent something is; the colour that it has, beside words that say it. */
export type Tone = 'good' | 'note' | 'warn' | 'bad';

export const STATES: Readonly<Record<ShownSource['state'], { readonly label: string; readonly tone: Tone }>> =
  {
    held: { label: 'held', tone: 'warn' },
    failing: { label: 'failing', tone: 'bad' },
    'never-read': { label: 'never read', tone: 'bad' },
    stale: { label: 'stale', tone: 'bad' },
    'unread-regions': { label: 'regions unread', tone: 'warn' },
    empty: { label: 'empty', tone: 'warn' },
    'not-configured': { label: 'not configured', tone: 'warn' },
    running: { label: 'first run', tone: 'note' },
    retired: { label: 'retired', tone: 'note' },
    disabled: { label: 'disabled', tone: 'note' },
    'not-needed': { label: 'not needed', tone: 'note' },
    ok: { label: 'fresh', tone: 'good' },
  };

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** A time in the past, as its age; the whole of it is the title. */
export function Ago({ at }: { at: string | null }) {
  const now = useNow();
  return at === null ? (
    <>–</>
  ) : (
    <time dateTime={at} title={utc(at)}>
      {ago(at, now)}
    </time>
  );
}

/** How long something has lasted. */
export function Lasting({ since }: { since: string }) {
  const now = useNow();
  return (
    <time dateTime={since} title={`since ${utc(since)}`}>
      {span(Math.max(0, (now.getTime() - Date.parse(since)) / 1000))}
    </time>
  );
}

export function Ahead({ at }: { at: string | null }) {
  const now = useNow();
  return at === null ? (
    <>–</>
  ) : (
    <time dateTime={at} title={utc(at)}>
      {ahead(at, now)}
    </time>
  );
}

/** The heading of a view; it has the focus after somebody came here. */
export function Title({ text, children }: { text: string; children?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${text} – Fleetbook`;
    if (document.activeElement === document.body || document.activeElement?.closest('nav'))
      heading.current?.focus({ preventScroll: true });
  }, [text]);
  return (
    <header class="title">
      <h1 ref={heading} tabIndex={-1}>
        {text}
      </h1>
      {children}
    </header>
  );
}

export function Trouble({ text }: { text: string | undefined }) {
  return text === undefined ? null : (
    <p class="trouble" role="alert">
      {text}
    </p>
  );
}

interface SearchProps {
  readonly label: string;
  readonly value: string;
  readonly onSearch: (text: string) => void;
}

/** Milliseconds without a key before what is typed is searched. */
const TYPING_MS = 200;

/** A field that searches while somebody types. */
export function Search({ label, value, onSearch }: SearchProps) {
  const [text, setText] = useState(value);
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => setText(value), [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <label class="field grow">
      <span>{label}</span>
      <input
        type="search"
        value={text}
        data-search
        onInput={(event) => {
          const next = event.currentTarget.value;
          setText(next);
          clearTimeout(timer.current);
          timer.current = window.setTimeout(() => onSearch(next.trim()), TYPING_MS);
        }}
      />
    </label>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChoose: (value: string) => void;
}

export function Choice({ label, value, options, onChoose }: ChoiceProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
