/** Small parts that all views use. */
import { type ComponentChildren, Fragment } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Severity, ShownSource } from '../../../../src/features/console/routes/answers.ts';
import type { Answer } from '../lib/data.ts';
import { ago, ahead, count, span, utc } from '../lib/format.ts';
import { useNow } from '../lib/live.ts';

/** The urgency of a state, shown by a colour and always by a word as well. */
export type Tone = 'good' | 'note' | 'warn' | 'bad';

/** The labels of states, the most urgent first. */
export const STATES: Readonly<Record<ShownSource['state'], string>> = {
  held: 'held',
  paused: 'paused',
  failing: 'failing',
  'never-read': 'never read',
  stale: 'stale',
  'stale-regions': 'regions stale',
  'unread-regions': 'regions unread',
  empty: 'empty',
  'not-configured': 'not configured',
  running: 'first run',
  retired: 'retired',
  disabled: 'disabled',
  'not-needed': 'not needed',
  ok: 'fresh',
};

export const toneOf = (severity: Severity): Tone => (severity === 'problem' ? 'bad' : 'warn');

export function StateBadge({ state, severity }: Pick<ShownSource, 'state' | 'severity'>) {
  const intended = state === 'ok' ? 'good' : 'note';
  const tone = severity === null || state === 'running' ? intended : toneOf(severity);
  return <Badge tone={tone}>{STATES[state]}</Badge>;
}

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

interface TimeProps {
  readonly at: string | null;
  readonly title: (at: string) => string;
  readonly text: (at: string, now: Date) => string;
}

function Time({ at, title, text }: TimeProps) {
  const now = useNow();
  if (at === null) return <>–</>;
  return (
    <time dateTime={at} title={title(at)}>
      {text(at, now)}
    </time>
  );
}

/** Shows the age of a past time, with the instant as its title. */
export const Ago = ({ at }: { at: string | null }) => <Time at={at} title={utc} text={ago} />;

/** Shows the time until an instant. */
export const TimeUntil = ({ at }: { at: string | null }) => <Time at={at} title={utc} text={ahead} />;

/** Shows the duration since an instant. */
export const TimeSince = ({ since }: { since: string }) => (
  <Time
    at={since}
    title={(at) => `since ${utc(at)}`}
    text={(at, now) => span(Math.max(0, (now.getTime() - Date.parse(at)) / 1000))}
  />
);

/** The heading of a view. It receives the focus when an operator opens the view. */
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

export function ErrorText({ text }: { text: string | undefined }) {
  return text === undefined ? null : (
    <p class="trouble" role="alert">
      {text}
    </p>
  );
}

/** Shows the error of a request, or a note until its first answer. */
export function Progress({ data, error, text = 'Loading …' }: Answer<unknown> & { text?: string }) {
  return data === undefined && error === undefined ? (
    <p class="loading">{text}</p>
  ) : (
    <ErrorText text={error} />
  );
}

/** Lists terms with their descriptions. Skips terms without a description. */
export function Facts({ facts }: { facts: Readonly<Record<string, ComponentChildren>> }) {
  return (
    <dl class="facts">
      {Object.entries(facts).map(
        ([term, description]) =>
          description && (
            <Fragment key={term}>
              <dt>{term}</dt>
              <dd>{description}</dd>
            </Fragment>
          ),
      )}
    </dl>
  );
}

interface TabsProps {
  readonly label: string;
  readonly tabs: readonly {
    readonly href: string;
    readonly text: string;
    readonly isCurrent: boolean;
    /** Shown after the text of the tab. */
    readonly n?: number | string | undefined;
  }[];
}

export function Tabs({ label, tabs }: TabsProps) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ href, text, isCurrent, n }) => (
        <a key={text} href={href} aria-current={isCurrent ? 'page' : undefined}>
          {text}
          {n !== undefined && <span class="muted"> {typeof n === 'number' ? count(n) : n}</span>}
        </a>
      ))}
    </nav>
  );
}
