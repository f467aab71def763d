/** A price over time, as steps: it holds until the next one. The table below the chart says the same in words. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { MachineAnswer } from '../../../../src/features/console/routes/api.ts';
import { resolved, useColourScheme, widthIn } from '../lib/canvas.ts';
import { axisTimes } from '../lib/format.ts';

const HEIGHT = 240;

interface PriceChartProps {
  readonly prices: MachineAnswer['prices'];
  readonly currency: string;
}

export function PriceChart({ prices, currency }: PriceChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const scheme = useColourScheme();
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const chart = draw(element, prices, currency);
    const sized = new ResizeObserver(() => chart.setSize({ width: widthIn(element), height: HEIGHT }));
    sized.observe(element);
    return () => {
      sized.disconnect();
      chart.destroy();
    };
  }, [prices, currency, scheme]);
  // As high as the chart before it is drawn, so that nothing below it moves.
  return (
    <div class="chart card" ref={place} role="img" aria-label="The prices of the table below, over time" />
  );
}

function draw(element: HTMLElement, prices: MachineAnswer['prices'], currency: string): uPlot {
  const times: number[] = [];
  const values: (number | null)[] = [];
  for (const { from, to, price, withdrawn } of prices.toReversed()) {
    times.push(Date.parse(from) / 1000);
    values.push(withdrawn === null && price !== null ? price * 60 : null);
    if (to === null) {
      // Up to now, and with one price only at least a line.
      times.push(Math.max(Date.now() / 1000, Date.parse(from) / 1000 + 60));
      values.push(values.at(-1) ?? null);
    }
  }
  const text = resolved('--muted');
  const grid = { stroke: resolved('--line'), width: 1 };
  const axis = { stroke: text, grid, ticks: grid, font: '12px system-ui' };
  const steps = uPlot.paths.stepped?.({ align: 1 });
  return new uPlot(
    {
      width: widthIn(element),
      // The last label of an axis needs room, and the table below is in UTC as well.
      padding: [null, 32, null, null],
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'UTC'),
      height: HEIGHT,
      legend: { show: false },
      scales: { y: { range: (_, min, max) => [Math.min(0, min), max > 0 ? max * 1.15 : 1] } },
      axes: [
        { ...axis, space: 80, values: (_, splits) => axisTimes(splits) },
        { ...axis, size: 64 },
      ],
      series: [
        {},
        {
          label: `${currency} per hour`,
          stroke: resolved('--link'),
          width: 2,
          ...(steps && { paths: steps }),
        },
      ],
    },
    [times, values],
    element,
  );
}
