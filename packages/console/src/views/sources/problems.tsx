import type { Problem } from '../../../../../src/features/console/routes/api.ts';
import { Acknowledged } from '../../parts/acknowledged.tsx';
import { Badge, Lasting, STATES } from '../../parts/basics.tsx';

interface SourceProblemsProps {
  readonly source: string;
  /** All problems of the source, the most urgent first. */
  readonly problems: readonly Problem[];
  /** On the page of the source itself. */
  readonly isHere?: boolean;
}

/** The problems of a source, with links to the pages on which an operator acts. */
export function SourceProblems({ source, problems, isHere }: SourceProblemsProps) {
  const [worst] = problems;
  if (worst === undefined) return null;
  const address = `/sources/${encodeURIComponent(source)}`;
  return (
    <li class={STATES[worst.kind].tone}>
      {!isHere && <a href={address}>{source}</a>}
      {problems.map(({ kind, since, text, acknowledgement }) => (
        <div key={kind}>
          <div class="what">
            <Badge tone={STATES[kind].tone}>{STATES[kind].label}</Badge>
            {since !== null && (
              <span class="muted">
                {' '}
                for <Lasting since={since} />
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
