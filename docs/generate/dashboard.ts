/** Writes docs/monitoring/dashboard.json, a dashboard for Grafana. Part of `npm run docs`. */
import { writeFileSync } from 'node:fs';
import { inPackage } from '../../src/config/package.ts';
import { ROWS } from './dashboard-panels.ts';
import type { Shown } from './dashboard-queries.ts';

export const DASHBOARD_FILE = 'docs/monitoring/dashboard.json';

const DATASOURCE = { type: 'prometheus', uid: '$datasource' };
/** Widths of the dashboard, charts and numbers, and their heights, in Grafana's units. */
const WIDTH = 24;
const CHART = { w: 8, h: 8 };
const NUMBER = { w: 4, h: 4 };

/** Returns the dashboard in Grafana's schema 39 (Grafana 10.4 and later). */
export function dashboard(): object {
  const panels: object[] = [];
  let y = 0;
  const add = (panel: object) => panels.push({ id: panels.length + 1, ...panel });
  for (const row of ROWS) {
    add({
      type: 'row',
      title: row.title,
      collapsed: false,
      gridPos: { h: 1, w: WIDTH, x: 0, y },
      panels: [],
    });
    y += 1;
    let x = 0;
    let height = 0;
    for (const shown of row.panels) {
      const size = shown.isNumber ? NUMBER : CHART;
      if (x + size.w > WIDTH) {
        x = 0;
        y += height;
      }
      add(panelOf(shown, { ...size, x, y }));
      x += size.w;
      height = size.h;
    }
    y += height;
  }
  return {
    title: 'Fleetbook',
    uid: 'fleetbook',
    description: 'Sources, publication, queues and the API of one installation of Fleetbook',
    tags: ['fleetbook'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    timezone: 'utc',
    templating: {
      list: [
        { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', hide: 0 },
        {
          name: 'job',
          label: 'Installation',
          type: 'query',
          datasource: DATASOURCE,
          query: { query: 'label_values(fleetbook_source_age_seconds, job)', refId: 'job' },
          refresh: 2,
          sort: 1,
          hide: 0,
        },
      ],
    },
    panels,
  };
}

function panelOf(
  { title, says, unit, queries, badFrom, isNumber, isStacked }: Shown,
  gridPos: object,
): object {
  const steps = [
    { color: 'green', value: null },
    ...(badFrom === undefined ? [] : [{ color: 'red', value: badFrom }]),
  ];
  const chart = {
    custom: {
      lineWidth: 1,
      fillOpacity: isStacked ? 30 : 0,
      showPoints: 'never',
      stacking: { mode: isStacked ? 'normal' : 'none' },
      thresholdsStyle: { mode: badFrom === undefined ? 'off' : 'line' },
    },
  };
  return {
    type: isNumber ? 'stat' : 'timeseries',
    title,
    description: says,
    datasource: DATASOURCE,
    gridPos,
    targets: queries.map(({ expr, legend = '' }, i) => ({
      refId: String.fromCharCode(65 + i),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
    })),
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        thresholds: { mode: 'absolute', steps },
        ...(isNumber ? { color: { mode: 'thresholds' } } : chart),
      },
      overrides: [],
    },
    options: isNumber
      ? { reduceOptions: { calcs: ['lastNotNull'] }, colorMode: 'background', graphMode: 'none' }
      : { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
  };
}

/** Returns the text of the file. */
export function dashboardText(): string {
  return `${JSON.stringify(dashboard(), null, 2)}\n`;
}

if (import.meta.main) writeFileSync(inPackage(DASHBOARD_FILE), dashboardText());
