/** Charts on a canvas. */
import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

/** The width between the paddings of an element, in pixels. */
export function widthIn(element: HTMLElement): number {
  const { paddingLeft, paddingRight } = getComputedStyle(element);
  return Math.max(50, element.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight));
}

/** The value of a colour variable, e.g. `--muted`. A canvas knows neither variables nor `light-dark()`. */
export function colourOf(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** The style of an axis and its grid. */
export function axisStyle(): uPlot.Axis {
  const grid = { stroke: colourOf('--line'), width: 1 };
  return { stroke: colourOf('--muted'), grid, ticks: grid, font: '12px system-ui' };
}

/** True for a dark page. A canvas keeps its colours, so the chart is drawn again when this changes. */
function useIsDark(): boolean {
  const [isDark, setIsDark] = useState(() => matchMedia('(prefers-color-scheme: dark)').matches);
  useEffect(() => {
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const onChange = () => setIsDark(scheme.matches);
    scheme.addEventListener('change', onChange);
    return () => scheme.removeEventListener('change', onChange);
  }, []);
  return isDark;
}

/**
 * Draws a chart in an element, with times in UTC and as wide as the element. New data goes into the chart.
 * @param key another key, or another colour scheme, draws another chart
 */
export function useChart(
  key: string,
  height: number,
  data: uPlot.AlignedData,
  options: () => Omit<uPlot.Options, 'width' | 'height'>,
): RefObject<HTMLDivElement | null> {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const isDark = useIsDark();
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const size = () => ({ width: widthIn(element), height });
    const made = new uPlot(
      {
        ...options(),
        ...size(),
        legend: { show: false },
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'UTC'),
      },
      data,
      element,
    );
    chart.current = made;
    const observer = new ResizeObserver(() => made.setSize(size()));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      chart.current = undefined;
    };
  }, [key, isDark]);
  useEffect(() => chart.current?.setData(data), [data]);
  return place;
}
