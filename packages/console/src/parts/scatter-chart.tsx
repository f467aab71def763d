/** A chart of price against size on logarithmic scales. People without a pointer use the table below the chart. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { MachinePoint } from '../../../../src/features/console/routes/answers.ts';
import { widthIn } from '../lib/canvas.ts';
import { hourly, memory } from '../lib/format.ts';
import { navigate } from '../lib/router.ts';

export type SizeOf = 'ram' | 'cpu';

const HEIGHT = 380;
const SIDES = { left: 64, right: 16, top: 14, bottom: 42 };
/** Maximum distance between the pointer and the selected machine, in pixels. */
const MAX_DISTANCE = 18;

interface ScatterChartProps {
  readonly points: readonly MachinePoint[];
  readonly size: SizeOf;
  readonly currency: string;
}

export function ScatterChart({ points, size, currency }: ScatterChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const [near, setNear] = useState<Placed | undefined>(undefined);
  const chart = useMemo(() => placed(points, size, width), [points, size, width]);
  useEffect(() => setNear(undefined), [chart]);
  const choose = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    setNear(nearest(chart.dots, event.clientX - box.left, event.clientY - box.top));
  };
  return (
    <div class="card scatter" ref={place}>
      <p class="chosen" aria-hidden="true">
        {near ? (
          <>
            <strong>{near.point.name}</strong> {near.point.provider}, {near.point.region}: {near.point.cpu}{' '}
            cpu, {memory(near.point)}, {hourly(near.point.price)} {currency} per hour
          </>
        ) : (
          <span class="muted">Point at a machine to see its data; click to open its page.</span>
        )}
      </p>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: keyboards use the links of the table below */}
      <svg
        role="img"
        aria-label={`Price per hour against ${size === 'ram' ? 'memory' : 'cpu'} of ${points.length} machines; the table below lists machines with links`}
        width={width}
        height={HEIGHT}
        class={near ? 'near' : ''}
        onPointerMove={choose}
        onPointerLeave={() => setNear(undefined)}
        onClick={() => near && navigate(`/machines/${near.point.id}`)}
      >
        <Axes {...chart} size={size} currency={currency} width={width} />
        <Dots dots={chart.dots} />
        {near && <circle class="at" cx={near.x} cy={near.y} r={6} />}
      </svg>
    </div>
  );
}

/** Returns the inner width of an element, in pixels; 0 until it is measured. */
function useWidth(place: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const sized = new ResizeObserver(() => setWidth(widthIn(element)));
    sized.observe(element);
    setWidth(widthIn(element));
    return () => sized.disconnect();
  }, []);
  return width;
}

interface Placed {
  readonly point: MachinePoint;
  readonly x: number;
  readonly y: number;
}

interface Tick {
  readonly at: number;
  readonly text: string;
}

interface Chart {
  readonly dots: readonly Placed[];
  readonly sizes: readonly Tick[];
  readonly prices: readonly Tick[];
}

/** Returns the memory in GB, so that GB and GiB share one scale. */
const gigabytes = ({ ram, ramUnit }: MachinePoint) => ram * (ramUnit === 'Binary' ? 1.073741824 : 1);

function placed(points: readonly MachinePoint[], size: SizeOf, width: number): Chart {
  const shown = points.filter(({ price, cpu, ram }) => price > 0 && cpu > 0 && ram > 0);
  if (shown.length === 0 || width === 0) return { dots: [], sizes: [], prices: [] };
  const sizeOf = size === 'ram' ? gigabytes : ({ cpu }: MachinePoint) => cpu;
  const x = scale(shown.map(sizeOf), SIDES.left, width - SIDES.right);
  const y = scale(
    shown.map(({ price }) => price * 60),
    HEIGHT - SIDES.bottom,
    SIDES.top,
  );
  const ticks = (values: readonly number[], to: (value: number) => number, apart: number): Tick[] => {
    const chosen: Tick[] = [];
    for (const value of values) {
      const last = chosen.at(-1);
      if (last === undefined || Math.abs(to(value) - last.at) >= apart)
        chosen.push({ at: to(value), text: String(Number(value.toPrecision(4))) });
    }
    return chosen;
  };
  return {
    dots: shown.map((point) => ({ point, x: x.to(sizeOf(point)), y: y.to(point.price * 60) })),
    sizes: ticks(powersOfTwo(x.from, x.until), x.to, 34),
    prices: ticks(oneTwoFive(y.from, y.until), y.to, 26),
  };
}

/** Returns a logarithmic scale with a margin at both ends. */
function scale(values: readonly number[], start: number, end: number) {
  const lowest = values.reduce((one, other) => Math.min(one, other), Number.POSITIVE_INFINITY);
  const highest = values.reduce((one, other) => Math.max(one, other), 0);
  const [from, until] = [lowest / 1.2, highest * 1.2];
  const length = Math.log(until / from);
  return { from, until, to: (value: number) => start + ((end - start) * Math.log(value / from)) / length };
}

function powersOfTwo(from: number, until: number): number[] {
  const first = Math.ceil(Math.log2(from));
  const last = Math.floor(Math.log2(until));
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => 2 ** (first + i));
}

function oneTwoFive(from: number, until: number): number[] {
  const first = Math.floor(Math.log10(from));
  const last = Math.ceil(Math.log10(until));
  return Array.from({ length: last - first + 1 }, (_, i) =>
    [1, 2, 5].map((digit) => digit * 10 ** (first + i)),
  )
    .flat()
    .filter((value) => value >= from && value <= until);
}

function nearest(dots: readonly Placed[], x: number, y: number): Placed | undefined {
  let found: Placed | undefined;
  let least = MAX_DISTANCE ** 2;
  for (const dot of dots) {
    const distance = (dot.x - x) ** 2 + (dot.y - y) ** 2;
    if (distance < least) [found, least] = [dot, distance];
  }
  return found;
}

/** Draws all points as one path: two thousand elements would slow down pointer movements. */
function Dots({ dots }: { dots: readonly Placed[] }) {
  const path = useMemo(() => dots.map(({ x, y }) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`).join(''), [dots]);
  return <path class="dots" d={path} />;
}

interface AxesProps extends Chart {
  readonly size: SizeOf;
  readonly currency: string;
  readonly width: number;
}

function Axes({ sizes, prices, size, currency, width }: AxesProps) {
  const bottom = HEIGHT - SIDES.bottom;
  return (
    <g class="axes">
      {sizes.map(({ at, text }) => (
        <g key={text}>
          <line x1={at} x2={at} y1={SIDES.top} y2={bottom} />
          <text x={at} y={bottom + 17} text-anchor="middle">
            {text}
          </text>
        </g>
      ))}
      {prices.map(({ at, text }) => (
        <g key={text}>
          <line x1={SIDES.left} x2={width - SIDES.right} y1={at} y2={at} />
          <text x={SIDES.left - 8} y={at + 4} text-anchor="end">
            {text}
          </text>
        </g>
      ))}
      <text x={width - SIDES.right} y={HEIGHT - 6} text-anchor="end">
        {size === 'ram' ? 'memory in GB' : 'cpu'}
      </text>
      <text x={-SIDES.top} y={14} text-anchor="end" transform="rotate(-90)">
        {currency} per hour
      </text>
    </g>
  );
}
