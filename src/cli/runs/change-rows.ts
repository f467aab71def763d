import type { Database } from '../../db/connection/client.ts';
import { factsChange } from '../../domain/machine-facts.ts';
import { CLUSTER_CHANGES, CLUSTER_FIELDS, MACHINE_CHANGES } from '../../domain/run.ts';
import {
  type ChangeScope,
  type ClusterChange,
  type ClusterChanges,
  clusterChanges,
  type MachineChange,
  type MachineChanges,
  type MachineState,
  machineChanges,
} from '../../features/console/queries/changes.ts';
import { alignedLines, memoryText, moreLine, wrapped } from '../terminal/output.ts';

export const lineWidth = (): number => Math.max(80, process.stdout.columns ?? 80);

/** Reads at most `limit` rows of each kind; undefined for all. */
export async function machinePages(
  db: Database,
  scope: ChangeScope,
  limit: number | undefined,
): Promise<MachineChanges> {
  return inPages(MACHINE_CHANGES, limit, (rows, kinds) => machineChanges(db, scope, { limit: rows }, kinds));
}

export async function clusterPages(
  db: Database,
  scope: ChangeScope,
  limit: number | undefined,
): Promise<ClusterChanges> {
  return inPages(CLUSTER_CHANGES, limit, (rows, kinds) => clusterChanges(db, scope, { limit: rows }, kinds));
}

async function inPages<Kind extends string, Row>(
  kinds: readonly Kind[],
  limit: number | undefined,
  read: (
    limit: number | undefined,
    kinds: readonly Kind[],
  ) => Promise<{ readonly totals: Readonly<Record<Kind, number>>; readonly rows: readonly Row[] }>,
) {
  if (limit === undefined) return read(undefined, kinds);
  const { totals } = await read(0, kinds);
  const rows: Row[] = [];
  for (const kind of kinds) if (totals[kind] > 0) rows.push(...(await read(limit, [kind])).rows);
  return { totals, rows };
}

const SIGNS = {
  retired: '-',
  withdrawn: '-',
  sold_out: '-',
  reshaped: '~',
  repriced: '~',
  excluded: '~',
  changed: '~',
  restocked: '+',
  published: '+',
  returned: '+',
  added: '+',
} as const;

/** Returns a line for each machine, and the number of further rows after each kind. @param columns further columns of a row */
export function machineLines(
  { rows, totals }: MachineChanges,
  width: number,
  columns: (row: MachineChange) => readonly string[] = () => [],
): string {
  const cells = rows.map((row) => [
    `${SIGNS[row.change]} ${row.change}`,
    ...columns(row),
    `${row.name} @ ${row.regionCode}`,
    [price(row), detail(row)].filter(Boolean).join(', '),
  ]);
  const lines = alignedLines(cells);
  const isWide = lines.some((line) => line.length > width + 1);
  const fitting = isWide ? cells.map((row) => wrapped(row.join(' '), width)) : lines;
  return inKinds(MACHINE_CHANGES, rows, fitting, totals);
}

export function clusterLines({ rows, totals }: ClusterChanges, width: number): string {
  const lines = rows.map((row) => {
    const head = `${SIGNS[row.change]} ${row.change} ${row.organization}/${row.slug} (${row.key})`;
    if (row.change !== 'changed') return wrapped(`${head}: ${placeOf(row)}`, width);
    return wrapped(`${head}:`, width) + fieldLines(row, width);
  });
  return inKinds(CLUSTER_CHANGES, rows, lines, totals);
}

function placeOf({ before, after }: ClusterChange): string {
  const state = after ?? before ?? {};
  return [state.provider, state.region, state.status, state.machine].filter(Boolean).join(', ');
}

function fieldLines({ before, after }: ClusterChange, width: number): string {
  return CLUSTER_FIELDS.filter((field) => before !== null && field in before)
    .map((field) => `${field}: ${before?.[field] ?? 'none'} → ${after?.[field] ?? 'none'}`)
    .map((text) => wrapped(text, width - 4).replace(/^(?=.)/gm, '    '))
    .join('');
}

/** Returns the rows' lines, and the number of further rows after each kind of change. */
export function inKinds<Kind extends string>(
  kinds: readonly Kind[],
  rows: readonly { readonly change: Kind }[],
  lines: readonly string[],
  totals: Readonly<Partial<Record<Kind, number>>>,
): string {
  return kinds
    .map((kind) => {
      const shown = lines.filter((_, index) => rows[index]?.change === kind);
      return shown.join('') + moreLine(shown.length, totals[kind] ?? 0, kind);
    })
    .join('');
}

function price({ before, after, factor }: MachineChange): string {
  const [old, now] = [stated(before), stated(after)];
  if (before === null || after === null || old === now) return now || old;
  const isAlike = before.currency === after.currency && before.per === after.per;
  const move = factor === null ? '' : ` (× ${factor.toPrecision(3)})`;
  return `${(isAlike ? before.amount : old) || 'none'} → ${now || 'none'}${move}`;
}

const stated = (state: MachineState | null): string =>
  state?.amount == null ? '' : `${state.amount} ${state.currency}/${state.per}`;

function detail({ before, after }: MachineChange): string {
  const sizes = [before, after].flatMap((state) => (state === null ? [] : shapeOf(state)));
  const size = sizes[1] !== undefined && sizes[0] !== sizes[1] ? sizes.join(' → ') : '';
  const reasons = [before, after].map((state) => state?.excluded ?? null);
  const [old, now] = reasons;
  const excluded =
    before === null || after === null || old === now
      ? (now ?? old ?? '')
      : `${old ?? 'shown'} → ${now ?? 'shown'}`;
  const facts = before && after ? factsChange(before.facts, after.facts) : '';
  return [size, facts, excluded].filter(Boolean).join(', ');
}

const shapeOf = (state: MachineState): string => `${state.cpu} cpu ${memoryText(state)}`;
