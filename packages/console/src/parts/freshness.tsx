import type { Freshness } from '../../../../src/features/console/routes/answers.ts';
import { span } from '../lib/format.ts';

/** The bar warns above this share of the objective. */
const WARN_SHARE = 0.8;

/** Shows the age of data and its objective as text and a bar. */
export function FreshnessBar({ ageSeconds, objectiveSeconds }: Freshness) {
  if (ageSeconds === null) return <span class="muted">never read</span>;
  if (objectiveSeconds === null) return <span>{span(ageSeconds)} old</span>;
  const share = ageSeconds / objectiveSeconds;
  const tone = share > 1 ? 'bad' : share > WARN_SHARE ? 'warn' : 'good';
  return (
    <span class={`freshness ${tone}`} style={{ '--share': `${Math.min(100, share * 100)}%` }}>
      {span(ageSeconds)} <span class="muted">of {span(objectiveSeconds)}</span>
    </span>
  );
}
