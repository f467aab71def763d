/** Draws a soak as SVG for light and dark backgrounds: answers, and resources of the processes. */
import type { Sample } from './samples.ts';

export interface Moment {
  /** Seconds since the beginning. */
  readonly at: number;
  readonly requests: number;
  readonly errors: number;
  /** Milliseconds. */
  readonly p99: number;
  readonly sample: Sample;
}

export interface Struck {
  readonly name: string;
  /** Seconds since the beginning. */
  readonly at: number;
  readonly until: number;
}

const [WIDTH, LEFT, RIGHT, PANEL, GAP, TOP] = [860, 60, 150, 110, 46, 60];
const COLOURS = ['#2f7ed8', '#d9822b', '#3aa655', '#8e5bd0', '#c23b5a', '#6b7785'];

export function chart(moments: readonly Moment[], faults: readonly Struck[], title: string): string {
  const seconds = moments.at(-1)?.at ?? 1;
  const x = (at: number) => LEFT + ((WIDTH - LEFT - RIGHT) * at) / seconds;
  const of = (word: string) =>
    Object.keys(moments[0]?.sample ?? {})
      .filter((name) => name.startsWith(`${word} of `))
      .map((name) => [name.slice(word.length + 4), (moment: Moment) => moment.sample[name] ?? 0] as const);
  const panels = [
    [
      'requests a second',
      [
        ['answered', perSecond((moment) => moment.requests)],
        ['errors', perSecond((moment) => moment.errors)],
      ],
    ],
    ['p99, milliseconds', [['p99', (moment: Moment) => moment.p99]]],
    ['memory, MB', of('memory')],
    ['handles', of('handles')],
    ['connections', of('connections')],
  ] as const;
  const height = TOP + panels.length * (PANEL + GAP);
  const drawn = panels.map(([name, lines], i) => {
    const top = TOP + i * (PANEL + GAP);
    const most = Math.max(1, ...lines.flatMap(([, value]) => moments.map(value)));
    const y = (value: number) => (top + PANEL - (PANEL * value) / most).toFixed(1);
    const curves = lines.map(([label, value], n) => {
      const points = moments.map((moment) => `${x(moment.at).toFixed(1)},${y(value(moment))}`).join(' ');
      const colour = COLOURS[n % COLOURS.length];
      return `<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="1.5"/>
<text x="${WIDTH - RIGHT + 8}" y="${top + 12 + n * 14}" style="fill:${colour}">${label}</text>`;
    });
    return `<text x="${LEFT}" y="${top - 8}" class="name">${name}</text>
<text x="${LEFT - 6}" y="${top + 8}" text-anchor="end">${Math.round(most)}</text>
<text x="${LEFT - 6}" y="${top + PANEL}" text-anchor="end">0</text>
<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${top + PANEL}" y2="${top + PANEL}" class="axis"/>
${curves.join('\n')}`;
  });
  const struck = faults.map(
    ({ name, at, until }) =>
      `<rect x="${x(at).toFixed(1)}" y="${TOP - 4}" width="${Math.max(1, x(until) - x(at)).toFixed(1)}" height="${height - TOP - GAP + 8}" class="fault"><title>${name}</title></rect>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${title}">
<style>text{font:12px system-ui,sans-serif;fill:#57606a}.name,.title{font-weight:600}.title{font-size:15px}.axis{stroke:#8c959f}.fault{fill:#8c959f;opacity:.22}@media(prefers-color-scheme:dark){text{fill:#9da7b3}}</style>
<text x="${LEFT}" y="24" class="title">${title}</text>
${struck.join('\n')}
${drawn.join('\n')}
<text x="${LEFT}" y="${height - 18}">0 min</text>
<text x="${WIDTH - RIGHT}" y="${height - 18}" text-anchor="end">${(seconds / 60).toFixed(0)} min; grey: a fault</text>
</svg>
`;

  function perSecond(count: (moment: Moment) => number) {
    // The requests of a missing sample count for the next one.
    return (moment: Moment): number =>
      count(moment) / (moment.at - (moments[moments.indexOf(moment) - 1]?.at ?? 0));
  }
}
