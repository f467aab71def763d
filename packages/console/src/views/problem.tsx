import type { Problem } from '../../../../src/features/console/routes/api.ts';
import { Acknowledged } from '../parts/acknowledged.tsx';
import { Badge, Lasting, STATES } from '../parts/basics.tsx';

interface SourceProblemsProps {
  readonly source: string;
  /** All of the source, the most urgent first. */
  readonly problems: readonly Problem[];
  /** On the page of the source itself. */
  readonly isHere?: boolean;
}

/** Every reason why a source needs a person, and what leads on. */
export function SourceProblems({ source, problems, isHere }: SourceProblemsProps) {
  const [worst] = problems;
  if (worst === undefined) return null;
  const address = `/sources/${encodeURIComponent(source)}`;
  return (
    <li class={STATES[worst.kind].tone}>
      {!isHere && <a href={address}>{source}</a>}
      {problems.map((problem) => (
        <div key={problem.kind}>
          <div class="what">
            <Badge tone={STATES[problem.kind].tone}>{STATES[problem.kind].label}</Badge>
            {problem.since !== null && (
              <span class="muted">
                {' '}
                for <Lasting since={problem.since} />
              </span>
            )}
          </div>
          <p>{problem.text}</p>
          {problem.acknowledgement && <Acknowledged {...problem.acknowledgement} />}
        </div>
      ))}
      {problems.map(({ kind, batch }) => (
        <Onward key={kind} kind={kind} batch={batch} address={address} />
      ))}
    </li>
  );
}

/** The page on which an operator acts on a problem. */
function Onward({
  kind,
  batch,
  address,
}: {
  kind: Problem['kind'];
  batch: number | undefined;
  address: string;
}) {
  if (batch !== undefined)
    return (
      <a class="button" href={`/held/${batch}`}>
        Look at batch {batch}
      </a>
    );
  if (kind === 'empty')
    return (
      <a class="button" href={`${address}?show=excluded`}>
        Excluded machines
      </a>
    );
  return null;
}
