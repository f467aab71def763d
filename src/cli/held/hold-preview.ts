import type { Preview } from '../../app/actions/batch.ts';
import { type BatchRecord, whyHeld } from '../../db/held-batches.ts';
import { hourly } from '../../domain/text/quantities.ts';
import type { PreviewRow } from '../../sync/catalogue/preview.ts';
import type { ClusterPreviewRow } from '../../sync/clusters/preview.ts';
import { inKinds } from '../runs/change-rows.ts';
import { alignedLines, alignedTable, moreLine } from '../terminal/output.ts';
import { reasonLines } from '../terminal/source-notes.ts';

export function headline(batch: BatchRecord): string {
  const since =
    batch.readAt <= batch.heldSince
      ? `held since ${batch.heldSince}`
      : `held since ${batch.heldSince}, last read ${batch.readAt}`;
  // The rows of a decided batch are deleted once its decision cannot be taken back.
  const rows = batch.status === 'pending' || batch.items > 0 ? `, ${batch.items} rows` : '';
  return `${batch.sourceId}: batch ${batch.id}, ${since}${rows}: ${whyHeld(batch)}`;
}

export function summary({ diff, kind }: Preview): string {
  const { known, added, changed, missing } = diff;
  const prices = kind === 'catalogue' ? ` (${diff.repriced} in price)` : '';
  return `${known} known: ${missing} gone, ${changed} changed${prices}, ${added} new`;
}

export function previewText(preview: Preview, limit: number | undefined): string {
  const rows = preview.kind === 'catalogue' ? machineRows(preview) : clusterRows(preview, limit);
  const reasons = reasonLines(preview.reasons);
  const unusable = reasons.length === 0 ? '' : `\nrows that cannot be used:\n${reasons.join('\n')}\n`;
  return `${summary(preview)}\n\n${rows}${unusable}`;
}

const SIGNS: Record<PreviewRow['change'], string> = {
  gone: '-',
  excluded: '-',
  price: '~',
  shape: '~',
  facts: '~',
  published: '+',
  new: '+',
};

const kindsOf = <Change>(rows: readonly { readonly change: Change }[]): Change[] => [
  ...new Set(rows.map(({ change }) => change)),
];

function machineRows({ rows, totals, unseen, currency }: Extract<Preview, { kind: 'catalogue' }>): string {
  const cells = rows.map((row) => [
    `${SIGNS[row.change]} ${row.change}`,
    `${row.name} @ ${row.regionCode}`,
    priceChange(row, currency),
    row.detail,
  ]);
  const text = inKinds(kindsOf(rows), rows, alignedLines(cells), totals);
  return unseen === 0 ? text : `${text}  and ${unseen} unpublished machines change\n`;
}

function priceChange({ oldPrice, newPrice }: PreviewRow, currency: string): string {
  const only = newPrice ?? oldPrice;
  if (only === null) return '';
  if (oldPrice === null || newPrice === null || oldPrice === newPrice) return `${hourly(only)} ${currency}/h`;
  const factor = oldPrice > 0 ? ` (× ${(newPrice / oldPrice).toPrecision(3)})` : '';
  return `${hourly(oldPrice)} → ${hourly(newPrice)} ${currency}/h${factor}`;
}

function clusterRows(
  { kind, rows, organizations, totals }: Exclude<Preview, { kind: 'catalogue' }>,
  limit: number | undefined,
): string {
  const shown = organizations.slice(0, limit);
  const table = alignedTable(
    [kind === 'clusters' ? 'ORGANIZATION' : 'ENGINE', 'GONE', 'CHANGED', 'NEW'],
    shown.map(({ organization, gone, changed, new: added }) => [
      organization,
      String(gone),
      String(changed),
      String(added),
    ]),
  );
  const sign = { gone: '-', changed: '~', new: '+' };
  const lines = rows.map(
    (row) =>
      `${sign[row.change]} ${row.change}  ${row.organization}/${row.name} (${row.key})${fieldLines(row)}\n`,
  );
  const more = moreLine(
    shown.length,
    organizations.length,
    kind === 'clusters' ? 'organizations' : 'engines',
  );
  return `${shown.length > 0 ? `${table}${more}\n` : ''}${inKinds(kindsOf(rows), rows, lines, totals)}`;
}

function fieldLines({ change, fields }: ClusterPreviewRow): string {
  if (change === 'changed') {
    if (fields.length === 0) return ': only a converted price, or its machine';
    return fields
      .map(({ field, before, after }) => `\n    ${field}: ${before ?? 'none'} → ${after ?? 'none'}`)
      .join('');
  }
  const shown = new Map(fields.map(({ field, before, after }) => [field, before ?? after]));
  const values = ['provider', 'region', 'status', 'machine', 'released_on', 'latest'].flatMap(
    (field) => shown.get(field) ?? [],
  );
  return `: ${values.join(', ')}`;
}
