import { useMemo } from 'preact/hooks';
import uPlot from 'uplot';
import type { MachineAnswer } from '../../../../src/features/console/routes/answers.ts';
import { axisStyle, colourOf, useChart } from '../lib/canvas.ts';
import { axisTimes } from '../lib/format.ts';

const HEIGHT = 240;

interface PriceChartProps {
  readonly prices: MachineAnswer['prices'];
  readonly currency: string;
}

/** A chart of a price over time. Each price applies until the next one, so the line has steps. */
export function PriceChart({ prices, currency }: PriceChartProps) {
  const data = useMemo(() => pointsOf(prices), [prices]);
  const steps = uPlot.paths.stepped?.({ align: 1 });
  const place = useChart(currency, HEIGHT, data, () => ({
    // Space for the last label of the time axis.
    padding: [null, 32, null, null],
    scales: { y: { range: (_, min, max) => [Math.min(0, min), max > 0 ? max * 1.15 : 1] } },
    axes: [
      { ...axisStyle(), space: 80, values: (_, splits) => axisTimes(splits) },
      { ...axisStyle(), size: 64 },
    ],
    series: [
      {},
      {
        label: `${currency} per hour`,
        stroke: colourOf('--link'),
        width: 2,
        ...(steps && { paths: steps }),
      },
    ],
  }));
  // The class sets the height, so that the table does not move when the chart appears.
  return (
    <div class="chart card" ref={place} role="img" aria-label="The prices of the table below, over time" />
  );
}

function pointsOf(prices: MachineAnswer['prices']): uPlot.AlignedData {
  const times: number[] = [];
  const values: (number | null)[] = [];
  for (const { from, to, price, withdrawn } of prices.toReversed()) {
    const began = Date.parse(from) / 1000;
    const hourly = withdrawn === null && price !== null ? price * 60 : null;
    times.push(began);
    values.push(hourly);
    if (to === null) {
      // The line of the current price covers at least a minute.
      times.push(Math.max(Date.now() / 1000, began + 60));
      values.push(hourly);
    }
  }
  return [times, values];
}
