import type { Problem } from '../../../../../src/features/console/routes/answers.ts';
import { Acknowledged } from '../../parts/acknowledged.tsx';
import { Badge, STATES, TimeSince, toneOf } from '../../parts/basics.tsx';

interface SourceProblemsProps {
  readonly source: string;
  /** All problems of the source, most urgent first. */
  readonly problems: readonly Problem[];
  /** The list is on the page of this source, so it needs no link to the source. */
  readonly isHere?: boolean;
}

/** Shows the problems of a source, with links to the pages that solve them. */
export function SourceProblems({ source, problems, isHere }: SourceProblemsProps) {
  if (problems.length === 0) return null;
  const worst = problems.some(({ severity }) => severity === 'problem') ? 'problem' : 'warning';
  const address = `/sources/${encodeURIComponent(source)}`;
  return (
    <li class={toneOf(worst)}>
      {!isHere && <a href={address}>{source}</a>}
      {problems.map(({ kind, severity, since, text, acknowledgement }) => (
        <div key={kind}>
          <div class="what">
            <Badge tone={toneOf(severity)}>{STATES[kind]}</Badge>
            {since !== null && (
              <span class="muted">
                {' '}
                for <TimeSince since={since} />
              </span>
            )}
          </div>
          <p>{text}</p>
          {acknowledgement && <Acknowledged {...acknowledgement} />}
        </div>
      ))}
      {problems.map(({ kind, batch }) =>
        batch !== undefined ? (
          <a key={kind} class="button" href={`/held/${batch}`}>
            Open batch {batch}
          </a>
        ) : kind === 'empty' ? (
          <a key={kind} class="button" href={`${address}?show=excluded`}>
            Excluded machines
          </a>
        ) : null,
      )}
    </li>
  );
}
