/** Answers a second as bars, a row for each kind of request, as SVG that is readable on light and on dark. */
import { median } from '../support/bar.ts';
import type { Results } from './bars.ts';
import type { Server } from './targets.ts';

const NAMES: readonly (readonly [Server, string])[] = [
  ['fleetbook', 'Fleetbook'],
  ['bare', 'bare node:http'],
  ['nginx', 'nginx'],
  ['redis', 'Fastify + Redis'],
  ['drizzle', 'Fastify + Drizzle'],
];

const WIDTH = 760;
const LEFT = 150;
const RIGHT = 90;
const BAR = 14;
const GAP = 4;
const GROUP_GAP = 22;
const TOP = 74;

export function chart({ hot, machine }: Pick<Results, 'hot' | 'machine'>): string {
  const lines: string[] = [];
  let y = TOP;
  for (const { what, perSecond } of hot.targets) {
    const found = NAMES.flatMap(([server, name]) => {
      const figures = perSecond[server];
      return figures ? [{ server, name, figures, value: median(figures) }] : [];
    });
    // Each row has a separate scale, since lists of 100 KB and 304s are not comparable.
    const most = Math.max(...found.flatMap(({ figures }) => figures));
    const x = (value: number) => round((value / most) * (WIDTH - LEFT - RIGHT));
    lines.push(`<text class="what" x="20" y="${y + 11}">${escaped(what)}</text>`);
    for (const { server, name, figures, value } of found) {
      const middle = y + BAR / 2;
      const [low, high] = [Math.min(...figures), Math.max(...figures)];
      lines.push(
        `<rect class="${server}" x="${LEFT}" y="${y}" width="${x(value)}" height="${BAR}" rx="2"><title>${escaped(name)}: ${Math.round(value)} a second, ${Math.round(low)} to ${Math.round(high)}</title></rect>`,
        `<path class="spread" d="M${LEFT + x(low)} ${middle}H${LEFT + x(high)}"/>`,
        `<text class="value" x="${LEFT + x(Math.max(value, high)) + 6}" y="${y + 11}">${thousands(value)}</text>`,
      );
      y += BAR + GAP;
    }
    y += GROUP_GAP - GAP;
  }
  const height = y + 38;
  const legend = NAMES.map(
    ([server, name], i) =>
      `<rect class="${server}" x="${20 + i * 142}" y="42" width="12" height="12" rx="2"/><text x="${38 + i * 142}" y="52">${escaped(name)}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="Answers a second of Fleetbook and of other servers">
<style>
text { font: 12px system-ui, sans-serif; fill: #1f2933 }
.title { font-size: 15px; font-weight: 600 }
.what { font-weight: 600 }
.value { font-variant-numeric: tabular-nums }
.note { fill: #52606d; font-size: 11px }
.spread { stroke: #1f2933; stroke-width: 1.5; opacity: .55 }
.fleetbook { fill: #1971c2 } .bare { fill: #868e96 } .nginx { fill: #37b24d } .redis { fill: #e8590c } .drizzle { fill: #ae3ec9 }
@media (prefers-color-scheme: dark) {
text { fill: #e4e7eb } .note { fill: #9aa5b1 } .spread { stroke: #e4e7eb; opacity: .8 }
.fleetbook { fill: #4dabf7 } .bare { fill: #adb5bd } .nginx { fill: #69db7c } .redis { fill: #ffa94d } .drizzle { fill: #da77f2 }
}
</style>
<text class="title" x="20" y="26">Answers a second, one process on one core</text>
${legend.join('\n')}
${lines.join('\n')}
${footer(machine)
  .map((line, i) => `<text class="note" x="20" y="${height - 26 + i * 16}">${escaped(line)}</text>`)
  .join('\n')}
</svg>
`;
}

/** The machine and the method of the run, in two lines. */
export function footer({ cores, pinned, node, rounds, seconds, at }: Results['machine']): string[] {
  const where = pinned ? 'server and load pinned to one each' : 'nothing pinned';
  const took = rounds === 1 ? 'one round' : `medians of ${rounds} interleaved rounds`;
  return [
    `${at.slice(0, 10)}; ${cores} cores, ${where}; Node ${node}; wrk, 64 connections`,
    `${took} of ${seconds} s; lines: from the lowest round to the highest`,
  ];
}

const thousands = (value: number): string => Math.round(value).toLocaleString('en-US');
const round = (value: number): number => Math.round(value * 10) / 10;

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
