import type { ReasonGroup } from '../../../../src/domain/rejected-rows.ts';
import { count } from '../lib/format.ts';

/** Lists the reasons of rejected rows with examples. */
export function ReasonList({ reasons }: { reasons: readonly ReasonGroup[] }) {
  return (
    <ul class="plain card">
      {reasons.map(({ code, reason, count: n, examples }) => (
        <li key={`${code} ${reason}`}>
          {count(n)} {code}: {reason}{' '}
          <span class="muted">
            ({examples.join(', ')}
            {n > examples.length ? ', …' : ''})
          </span>
        </li>
      ))}
    </ul>
  );
}
