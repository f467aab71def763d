/**
 * `node bench/history.ts <result> <folder> <commit>`: adds a result of `npm run bench -- read --json` to `read.ndjson` in the folder,
 * and draws all results as `read.svg`.
 */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Bar, shown } from './support/bar.ts';

export interface Entry {
  readonly at: string;
  readonly commit: string;
  readonly bars: readonly Pick<Bar, 'what' | 'found' | 'unit' | 'limit'>[];
}

const WIDTH = 900;
const ROW = 44;
const CHART = { left: 430, width: 330, height: 30 } as const;

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Returns a picture with a row for each bar of the newest entry: its line over all entries, and the newest value. */
export function historyChart(entries: readonly Entry[]): string {
  const newest = entries.at(-1);
  if (newest === undefined) throw new Error('there is no result to draw');
  const bars = newest.bars.filter(({ found }) => found !== undefined);
  const rows = bars.map(({ what, found, unit, limit }, index) => {
    const values = entries.map(
      (entry) => entry.bars.find((bar) => bar.what === what && bar.unit === unit)?.found,
    );
    const y = 50 + index * ROW;
    const goal = limit === undefined ? '' : ` (limit ${shown(limit)})`;
    return `<text x="10" y="${y + 20}">${escaped(what)}</text>
${line(values, y)}
<text class="value" x="${CHART.left + CHART.width + 14}" y="${y + 20}">${shown(found ?? 0)} ${escaped(unit)}${goal}</text>`;
  });
  const [first = newest] = entries;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${60 + bars.length * ROW}" role="img" aria-label="Results of bench:read over time">
<style>text { font: 12px system-ui, sans-serif; fill: #52606d } .value { font-weight: 600 } path { fill: none; stroke: #1971c2; stroke-width: 1.5 } circle { fill: #1971c2 }</style>
<text x="10" y="24">${entries.length} results, ${first.at.slice(0, 10)} to ${newest.at.slice(0, 10)}. Each line begins at zero.</text>
${rows.join('\n')}
</svg>
`;
}

function line(values: readonly (number | undefined)[], y: number): string {
  const most = Math.max(...values.map((value) => value ?? 0), Number.MIN_VALUE);
  const step = CHART.width / Math.max(values.length - 1, 1);
  const points = values.flatMap((value, index) =>
    value === undefined
      ? []
      : [`${(CHART.left + index * step).toFixed(1)} ${(y + CHART.height * (1 - value / most)).toFixed(1)}`],
  );
  const [last = ''] = points.slice(-1);
  const [cx, cy] = last.split(' ');
  return `<path d="M${points.join('L')}"/><circle cx="${cx}" cy="${cy}" r="2.5"/>`;
}

/** Adds a result to the folder's history. */
export function addResult(
  result: { readonly bars: readonly Bar[] },
  folder: string,
  commit: string,
  at: string,
): void {
  const bars = result.bars.map(({ bound: _bound, goal: _goal, note: _note, ...bar }) => bar);
  const file = join(folder, 'read.ndjson');
  appendFileSync(file, `${JSON.stringify({ at, commit, bars } satisfies Entry)}\n`);
  const entries = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((each) => JSON.parse(each) as Entry);
  writeFileSync(join(folder, 'read.svg'), historyChart(entries));
  writeFileSync(
    join(folder, 'README.md'),
    '# Benchmarks\n\n`read.ndjson` has the results of `npm run bench -- read` on runners of GitHub, oldest first.\n\n![All results over time](read.svg)\n',
  );
}

if (import.meta.main) {
  const [result = '', folder = '', commit = ''] = process.argv.slice(2);
  if (commit === '') {
    process.stderr.write(
      'bench/history.ts: give the file of the result, the folder of the history and the commit\n',
    );
    process.exit(1);
  }
  const read = JSON.parse(readFileSync(result, 'utf8')) as { readonly bars: readonly Bar[] };
  addResult(read, folder, commit, new Date().toISOString());
}
