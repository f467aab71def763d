/** Draws charts on a canvas. */
import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

/** Returns the width of an element without its padding, in pixels. */
export function widthIn(element: HTMLElement): number {
  const { paddingLeft, paddingRight } = getComputedStyle(element);
  return Math.max(50, element.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight));
}

/** Returns the colour of a CSS variable, e.g. `--muted`. A canvas supports neither variables nor `light-dark()`. */
export function colourOf(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

export function axisStyle(): uPlot.Axis {
  const grid = { stroke: colourOf('--line'), width: 1 };
  return { stroke: colourOf('--muted'), grid, ticks: grid, font: '12px system-ui' };
}

/** Returns true if the page is dark. A canvas does not follow the colour scheme: redraw it when this changes. */
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
 * Draws a chart that fills the width of an element, with times in UTC. New data updates the chart.
 * @param key a new key, or a new colour scheme, creates a new chart
 */
export function useChart(
  key: string,
  height: number,
  data: uPlot.AlignedData,
  options: () => Omit<uPlot.Options, 'width' | 'height'>,
): RefObject<HTMLDivElement | null> {
  const container = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const isDark = useIsDark();
  useEffect(() => {
    const element = container.current;
    if (element === null) return undefined;
    const size = () => ({ width: widthIn(element), height });
    const created = new uPlot(
      {
        ...options(),
        ...size(),
        legend: { show: false },
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'UTC'),
      },
      data,
      element,
    );
    chart.current = created;
    const observer = new ResizeObserver(() => created.setSize(size()));
    observer.observe(element);
    return () => {
      observer.disconnect();
      created.destroy();
      chart.current = undefined;
    };
  }, [key, isDark]);
  useEffect(() => chart.current?.setData(data), [data]);
  return container;
}
