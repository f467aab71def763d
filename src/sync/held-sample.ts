import { type HeldSample, type HeldSampleRow, sampleOf } from '../domain/held-sample.ts';
import { hourly } from '../domain/text/quantities.ts';
import type { CataloguePreview, PreviewRow } from './catalogue/diff.ts';
import type { ClusterPreview, ClusterPreviewRow } from './clusters/preview.ts';

const sum = (totals: Readonly<Record<string, number>>) =>
  Object.values(totals).reduce((all, each) => all + each, 0);

export function sampleOfMachines({ rows, totals }: CataloguePreview, currency: string): HeldSample {
  return sampleOf(
    rows.map((row) => ({
      change: row.change,
      name: row.name,
      place: row.regionCode,
      ...priceAndDetail(row, currency),
    })),
    sum(totals),
  );
}

function priceAndDetail(
  { change, oldPrice, newPrice, detail }: PreviewRow,
  currency: string,
): Pick<HeldSampleRow, 'before' | 'after'> {
  const price = (perMinute: number | null) =>
    perMinute === null ? [] : [`${hourly(perMinute)} ${currency}/hour`];
  // The detail of a size has both sides; the detail of an exclusion has only the new reason.
  const [before, after] = detail.includes(' → ') ? detail.split(' → ') : ['', detail];
  if (change === 'gone') return { before: 'published', after: null };
  const text = (price: string[], more: string | undefined) => [...price, ...(more ? [more] : [])].join(', ');
  return {
    before: change === 'new' ? null : text(price(oldPrice), before) || 'published',
    after: change === 'excluded' ? detail : text(price(newPrice), after) || 'published',
  };
}

export function sampleOfClusters({ rows, totals }: ClusterPreview): HeldSample {
  return sampleOf(
    rows.map((row) => ({ change: row.change, name: row.name, place: row.organization, ...fieldsOf(row) })),
    sum(totals),
  );
}

function fieldsOf({ change, fields }: ClusterPreviewRow): Pick<HeldSampleRow, 'before' | 'after'> {
  const values = (of: 'before' | 'after') =>
    fields.map((each) => `${each.field} ${each[of] ?? 'none'}`).join(', ');
  return {
    before: change === 'new' ? null : values('before'),
    after: change === 'gone' ? null : values('after'),
  };
}
