import type { Problem } from '../../ops/console/api.ts';
import { Badge, Lasting, STATES } from '../parts/basics.tsx';

/** Something that needs a person, and the way to it. `isHere` on the page of its source. */
export function ProblemItem({ kind, source, text, since, batch, isHere }: Problem & { isHere?: boolean }) {
  const { label, tone } = STATES[kind];
  return (
    <li class={tone}>
      <div class="what">
        <Badge tone={tone}>{label}</Badge>{' '}
        {!isHere && <a href={`/sources/${encodeURIComponent(source)}`}>{source}</a>}
        {since !== null && (
          <span class="muted">
            {' '}
            for <Lasting since={since} />
          </span>
        )}
      </div>
      <p>{text}</p>
      {batch !== undefined && (
        <a class="button" href={`/held/${batch}`}>
          Look at batch {batch}
        </a>
      )}
    </li>
  );
}
