/** What a search of machines finds, as price against size. */
import type { PointsAnswer } from '../../../../src/features/console/routes/api.ts';
import { useData } from '../lib/data.ts';
import { count, counted } from '../lib/format.ts';
import { addressWith, navigate, type Place } from '../lib/router.ts';
import { Choice, Trouble } from '../parts/basics.tsx';
import { ScatterChart, type SizeOf } from '../parts/scatter-chart.tsx';

const SIZES: readonly (readonly [SizeOf, string])[] = [
  ['ram', 'memory'],
  ['cpu', 'cpu'],
];

export function MachinePoints({ place, query }: { place: Place; query: URLSearchParams }) {
  // Whichever page and order the table shows, the points are of all that was found.
  const search = new URLSearchParams(query);
  for (const name of ['limit', 'offset', 'sort', 'order']) search.delete(name);
  const { data, error, isOld } = useData<PointsAnswer>(`/api/machines/points?${search}`);
  const size: SizeOf = place.query.get('size') === 'cpu' ? 'cpu' : 'ram';
  return (
    <section class={isOld ? 'old' : ''} aria-label="Price against size">
      <div class="charts-head">
        <Choice
          label="Against"
          value={size}
          options={SIZES}
          onChoose={(chosen) => navigate(addressWith(place, { size: chosen === 'ram' ? '' : chosen }), true)}
        />
        <p class="muted" role="status">
          {data && told(data)}
        </p>
      </div>
      <Trouble text={error} />
      <ScatterChart points={data?.points ?? []} size={size} currency={data?.currency ?? ''} />
    </section>
  );
}

function told({ points, total, isMore, isSample }: PointsAnswer): string {
  if (points.length === 0) return 'No machine with a price is like that.';
  const all = `${count(total)}${isMore ? ' or more' : ''} machines`;
  if (isSample)
    return `${count(points.length)} of ${all}: of each size the cheapest, the dearest and some between.`;
  const lacking = total - points.length;
  return `${counted(points.length, 'machine')}${lacking > 0 ? `; ${count(lacking)} without a price are left out` : ''}.`;
}
