/** A chart of values over time. The legend shows the values at the pointer, or the newest ones. A table lists some values. */
import { useMemo, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import { axisStyle, colourOf, useChart } from '../lib/canvas.ts';

const HEIGHT = 150;
/** Allowed steps between the labels of an axis of counts. */
const COUNT_STEPS = [1, 2, 5]
  .flatMap((digit) => Array.from({ length: 9 }, (_, i) => digit * 10 ** i))
  .sort((a, b) => a - b);
/** Approximate number of rows of the table. */
const TABLE_ROWS = 12;

export interface ChartLine {
  readonly name: string;
  /** One value per time; null is a gap. */
  readonly values: readonly (number | null)[];
  /** The known part of each value, drawn in the gaps as a thin dotted line. */
  readonly known?: readonly (number | null)[];
}

interface LineChartProps {
  readonly title: string;
  /** Seconds since 1970; empty before the first answer. */
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
  readonly write: (value: number) => string;
  /** Writes the labels of the axis; `write` unless given. */
  readonly writeAxis?: (value: number) => string;
  /** The values are counts, so the axis shows whole numbers only. */
  readonly isWhole?: boolean;
  /** The axis ends at this value or above. */
  readonly atLeast: number;
  /** The times are days, so the axis shows dates. */
  readonly isDaily?: boolean;
  /** The text to show if there are no values. */
  readonly empty: string;
}

/** Colours and dashes that colour-blind people can distinguish. */
const STYLES = [
  ['--line-1', []],
  ['--line-2', [7, 4]],
  ['--line-3', [2, 3]],
  ['--line-4', [10, 3, 2, 3]],
] as const;

const styleOf = (i: number) => STYLES[i % STYLES.length] ?? STYLES[0];

export function LineChart(props: LineChartProps) {
  const { title, times, lines, write, empty, isDaily = false } = props;
  const timeText = isDaily ? day : clock;
  const [at, setAt] = useState<number | null>(null);
  const isEmpty = !lines.some((line) => line.values.some((_, i) => knownAt(line, i) !== null));
  const newest = times.findLastIndex((_, i) => lines.some((line) => knownAt(line, i) !== null));
  const shown = at !== null && at < times.length ? at : newest;
  return (
    <figure class="card line-chart">
      <figcaption>
        <h3>{title}</h3>
        <span class="muted small">{shown >= 0 && !isEmpty ? timeText(times[shown] ?? 0) : ''}</span>
      </figcaption>
      <ul class="legend">
        {lines.map((line, i) => (
          <li key={line.name}>
            <Swatch i={i} />
            {line.name} <strong>{valueText(line, shown, write)}</strong>
          </li>
        ))}
      </ul>
      <div class="canvas">
        {isEmpty ? <p class="muted">{empty}</p> : <Canvas {...props} onPoint={setAt} />}
      </div>
      <Table times={times} lines={lines} write={write} title={title} timeText={timeText} />
    </figure>
  );
}

const knownAt = ({ values, known }: ChartLine, i: number) => values[i] ?? known?.[i] ?? null;

function valueText(line: ChartLine, i: number, write: (value: number) => string): string {
  const known = knownAt(line, i);
  if (known === null) return '–';
  return (line.values[i] ?? null) === null ? `at least ${write(known)}` : write(known);
}

/** `2026-01-31`, and the time unless it is midnight. */
function day(seconds: number): string {
  const text = new Date(seconds * 1000).toISOString();
  return text.slice(11, 16) === '00:00'
    ? text.slice(0, 10)
    : `${text.slice(0, 10)} ${text.slice(11, 16)} UTC`;
}

/** `14:05` UTC */
const clock = (seconds: number) => `${new Date(seconds * 1000).toISOString().slice(11, 16)} UTC`;

function Swatch({ i }: { i: number }) {
  const [colour, dash] = styleOf(i);
  return (
    <svg class="swatch" width={22} height={10} aria-hidden="true">
      <line
        x2={22}
        y1={5}
        y2={5}
        stroke-width={3}
        stroke-dasharray={dash.join(' ')}
        style={{ stroke: `var(${colour})` }}
      />
    </svg>
  );
}

interface CanvasProps extends LineChartProps {
  readonly onPoint: (index: number | null) => void;
}

function Canvas(props: CanvasProps) {
  const { title, times, lines, write, atLeast, onPoint } = props;
  const { writeAxis = write, isWhole = false, isDaily = false } = props;
  const data = useMemo(
    (): uPlot.AlignedData => [
      [...times],
      ...lines.map(({ values }) => [...values]),
      ...lines.flatMap((line) => (line.known ? [inGaps(line)] : [])),
    ],
    [times, lines],
  );
  const names = lines.map(({ name }) => name);
  const place = useChart(names.join('\n'), HEIGHT, data, () => ({
    // Space for the last label of the time axis.
    padding: [8, 20, 0, 0],
    cursor: { y: false, sync: { key: 'charts' }, drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      y: { range: (_, __, max) => [0, Math.max(atLeast, (max || 0) * 1.1)] },
    },
    axes: [
      {
        ...axisStyle(),
        size: 30,
        space: 70,
        values: (_, splits) =>
          splits.map((each) => (isDaily ? day(each).slice(5, 10) : clock(each).slice(0, 5))),
      },
      {
        ...axisStyle(),
        size: 62,
        space: 34,
        values: (_, splits) => splits.map(writeAxis),
        ...(isWhole && { incrs: COUNT_STEPS }),
      },
    ],
    series: [
      {},
      ...names.map(seriesOf),
      ...lines.flatMap(({ name, known }, i) => (known ? [gapSeriesOf(name, i)] : [])),
    ],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
  }));
  return <div ref={place} role="img" aria-label={`${title} over time; the table below has the same data`} />;
}

function seriesOf(label: string, i: number): uPlot.Series {
  const [colour, dash] = styleOf(i);
  const stroke = colourOf(colour);
  // Points show values between two gaps, which have no line.
  return { label, stroke, width: 2, points: { show: true, size: 4, fill: stroke }, dash: [...dash] };
}

/** Returns the known parts in the gaps, and the values next to them, which the dotted line begins and ends at. */
function inGaps({ values, known = [] }: ChartLine): (number | null)[] {
  const isGap = (i: number) => i >= 0 && i < values.length && (values[i] ?? null) === null;
  return values.map((value, i) => {
    if (isGap(i)) return known[i] ?? null;
    return isGap(i - 1) || isGap(i + 1) ? value : null;
  });
}

function gapSeriesOf(label: string, i: number): uPlot.Series {
  const stroke = colourOf(styleOf(i)[0]);
  return { label: `${label}, known parts`, stroke, width: 1, points: { show: false }, dash: [1, 4] };
}

interface ValuesProps extends Pick<LineChartProps, 'times' | 'lines' | 'write' | 'title'> {
  readonly timeText: (seconds: number) => string;
}

/** Lists some of the values, for people who cannot see the chart. */
function Table({ times, lines, write, title, timeText }: ValuesProps) {
  const [isOpen, setIsOpen] = useState(false);
  const every = Math.max(1, Math.floor(times.length / TABLE_ROWS));
  const rows = times.map((_, i) => i).filter((i) => (times.length - 1 - i) % every === 0);
  return (
    <details onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        As a table<span class="hidden">: {title}</span>
      </summary>
      {isOpen && (
        <table>
          <thead>
            <tr>
              <th scope="col">UTC</th>
              {lines.map(({ name }) => (
                <th key={name} scope="col" class="number">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.toReversed().map((i) => (
              <tr key={i}>
                <th scope="row">{timeText(times[i] ?? 0).replace(' UTC', '')}</th>
                {lines.map((line) => (
                  <td key={line.name} class="number">
                    {valueText(line, i, write)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </details>
  );
}
