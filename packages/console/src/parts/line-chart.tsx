/** Values over time. The legend says each of them in words, at the time under the pointer or the newest; so does a table. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { resolved, useColourScheme, widthIn } from '../lib/canvas.ts';

const HEIGHT = 150;
/** Distances between the numbers of an axis of counts. */
const WHOLE = [1, 2, 5]
  .flatMap((digit) => Array.from({ length: 9 }, (_, i) => digit * 10 ** i))
  .sort((a, b) => a - b);
/** Rows of the table at most: each is the value at that time. */
const ROWS = 12;

export interface ChartLine {
  readonly name: string;
  /** One for each time; null is a gap. */
  readonly values: readonly (number | null)[];
}

interface LineChartProps {
  readonly title: string;
  /** Seconds since 1970; empty before the first answer. */
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
  readonly write: (value: number) => string;
  /** Values are counts. */
  readonly isWhole?: boolean;
  /** The axis goes at least as far. */
  readonly atLeast: number;
  /** Said in place of a chart that has nothing to draw. */
  readonly empty: string;
}

/** Told apart by colour, also where red and green look alike, and by dashes. */
const STYLES = [
  ['--line-1', []],
  ['--line-2', [7, 4]],
  ['--line-3', [2, 3]],
  ['--line-4', [10, 3, 2, 3]],
] as const;

const styleOf = (i: number) => STYLES[i % STYLES.length] ?? STYLES[0];

export function LineChart(props: LineChartProps) {
  const { title, times, lines, write, empty } = props;
  const [at, setAt] = useState<number | null>(null);
  const isEmpty = !lines.some(({ values }) => values.some((value) => value !== null));
  const newest = times.findLastIndex((_, i) => lines.some(({ values }) => (values[i] ?? null) !== null));
  const shown = at !== null && at < times.length ? at : newest;
  return (
    <figure class="card line-chart">
      <figcaption>
        <h3>{title}</h3>
        <span class="muted small">{shown >= 0 && !isEmpty ? clock(times[shown] ?? 0) : ''}</span>
      </figcaption>
      <ul class="legend">
        {lines.map(({ name, values }, i) => (
          <li key={name}>
            <Swatch i={i} />
            {name} <strong>{told(values[shown], write)}</strong>
          </li>
        ))}
      </ul>
      <div class="canvas">
        {isEmpty ? <p class="muted">{empty}</p> : <Canvas {...props} onPoint={setAt} />}
      </div>
      <Table times={times} lines={lines} write={write} title={title} />
    </figure>
  );
}

const told = (value: number | null | undefined, write: (value: number) => string) =>
  value === null || value === undefined ? '–' : write(value);

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
  const { title, times, lines, write, isWhole = false, atLeast, onPoint } = props;
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const scheme = useColourScheme();
  const names = lines.map(({ name }) => name).join('\n');
  const data = useMemo(
    (): uPlot.AlignedData => [[...times], ...lines.map(({ values }) => [...values])],
    [times, lines],
  );
  // New values go into the chart that is there: only other lines, or other colours, need another one.
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const made = new uPlot(
      options(element, names.split('\n'), { write, isWhole, atLeast, onPoint }),
      data,
      element,
    );
    chart.current = made;
    const sized = new ResizeObserver(() => made.setSize({ width: widthIn(element), height: HEIGHT }));
    sized.observe(element);
    return () => {
      sized.disconnect();
      made.destroy();
      chart.current = undefined;
    };
  }, [names, scheme]);
  useEffect(() => chart.current?.setData(data), [data]);
  return <div ref={place} role="img" aria-label={`${title} over time; the table below says the same`} />;
}

function options(
  element: HTMLElement,
  names: readonly string[],
  {
    write,
    isWhole,
    atLeast,
    onPoint,
  }: Required<Pick<CanvasProps, 'write' | 'isWhole' | 'atLeast' | 'onPoint'>>,
): uPlot.Options {
  const grid = { stroke: resolved('--line'), width: 1 };
  const axis = { stroke: resolved('--muted'), grid, ticks: grid, font: '12px system-ui' };
  return {
    width: widthIn(element),
    height: HEIGHT,
    // The last label of the axis of time needs room.
    padding: [8, 20, 0, 0],
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'UTC'),
    legend: { show: false },
    cursor: { y: false, sync: { key: 'charts' }, drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      y: { range: (_, __, max) => [0, Math.max(atLeast, (max || 0) * 1.1)] },
    },
    axes: [
      { ...axis, size: 30, space: 70, values: (_, splits) => splits.map((each) => clock(each).slice(0, 5)) },
      {
        ...axis,
        size: 62,
        space: 34,
        values: (_, splits) => splits.map(write),
        ...(isWhole && { incrs: WHOLE }),
      },
    ],
    series: [
      {},
      ...names.map((name, i): uPlot.Series => {
        const [colour, dash] = styleOf(i);
        const stroke = resolved(colour);
        return {
          label: name,
          stroke,
          width: 2,
          // A value between two gaps has no line.
          points: { show: true, size: 4, fill: stroke },
          dash: [...dash],
        };
      }),
    ],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
  };
}

/** For who cannot see the chart: some of its values. */
function Table({ times, lines, write, title }: Pick<LineChartProps, 'times' | 'lines' | 'write' | 'title'>) {
  const [isOpen, setIsOpen] = useState(false);
  const every = Math.max(1, Math.floor(times.length / ROWS));
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
                <th scope="row">{clock(times[i] ?? 0).slice(0, 5)}</th>
                {lines.map(({ name, values }) => (
                  <td key={name} class="number">
                    {told(values[i], write)}
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
