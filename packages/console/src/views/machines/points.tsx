import type { PointsAnswer } from '../../../../../src/features/console/routes/answers.ts';
import { useData } from '../../lib/data.ts';
import { count, counted } from '../../lib/format.ts';
import { filtersOf, type Place } from '../../lib/router.ts';
import { ErrorText } from '../../parts/basics.tsx';
import { Choice } from '../../parts/filters.tsx';
import { ScatterChart, type SizeOf } from '../../parts/scatter-chart.tsx';

const SIZES: readonly (readonly [SizeOf, string])[] = [
  ['ram', 'memory'],
  ['cpu', 'cpu'],
];

/** Charts the machines of a search: price against size. */
export function MachinePoints({ place, query }: { place: Place; query: URLSearchParams }) {
  // The chart covers all pages of the table.
  const search = new URLSearchParams(query);
  for (const name of ['limit', 'offset', 'sort', 'order']) search.delete(name);
  const { data, error, isOld } = useData<PointsAnswer>(`/api/machines/points?${search}`);
  const { value, set } = filtersOf(place);
  const size: SizeOf = value('size') === 'cpu' ? 'cpu' : 'ram';
  return (
    <section class={isOld ? 'old' : ''} aria-label="Price against size">
      <div class="charts-head">
        <Choice
          label="Against"
          value={size}
          options={SIZES}
          onChoose={(chosen) => set({ size: chosen === 'ram' ? '' : chosen })}
        />
        <p class="muted" role="status">
          {data && summaryText(data)}
        </p>
      </div>
      <ErrorText text={error} />
      <ScatterChart points={data?.points ?? []} size={size} currency={data?.currency ?? ''} />
    </section>
  );
}

function summaryText({ points, total, isMore, isSample }: PointsAnswer): string {
  if (points.length === 0) return 'No machine with a price matches.';
  const all = `${count(total)}${isMore ? ' or more' : ''} machines`;
  if (isSample)
    return `${count(points.length)} of ${all}: the cheapest and the most expensive of each size, and some in between.`;
  const lacking = total - points.length;
  return `${counted(points.length, 'machine')}${lacking > 0 ? `; ${count(lacking)} without a price are left out` : ''}.`;
}
