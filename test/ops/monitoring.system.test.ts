/** The shipped rules and dashboard for Prometheus and Grafana fit the metrics of the real programs. */
import { spawnSync } from 'node:child_process';
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROWS } from '../../docs/generate/dashboard-panels.ts';
import { inPackage } from '../../src/config/package.ts';
import { findProgram } from '../../src/processes/find-program.ts';
import { needs, PROMTOOL } from '../support/needs.ts';
import { alertRules, RULE_TESTS_FILE, RULES_FILE, ruleChecks } from './alert-rules.ts';
import { scrapePrograms } from './scraped.ts';

const program = findProgram('promtool');
const hasPromtool = needs(program !== undefined, PROMTOOL);
const scraped = await scrapePrograms();
const knownLabels = labelsOf(scraped.worker + scraped.api);

/** Series and labels that Prometheus adds itself. */
const OF_PROMETHEUS = new Map([['up', new Set<string>()]]);
const LABELS_OF_PROMETHEUS = ['job', 'instance'];

function promtool(args: readonly string[], input = '') {
  const { status, stdout, stderr } = spawnSync(program ?? '', [...args], { input, encoding: 'utf8' });
  return { status, output: stdout + stderr };
}

/** Each series of a page with its labels; no labels for a series without a value yet. */
function labelsOf(page: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const [, name = '', type] of page.matchAll(/^# TYPE (\w+) (\w+)$/gm)) {
    const names = type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name];
    for (const each of names) found.set(each, new Set());
  }
  for (const [, name = '', labels = ''] of page.matchAll(/^(\w+)\{(.*)\} \S+$/gm))
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) found.get(name)?.add(label);
  return found;
}

interface Selector {
  readonly name: string;
  readonly labels: readonly string[];
}

/** The series of an expression, with the labels of its selectors. */
function selectorsOf(expr: string): Selector[] {
  return [...expr.matchAll(/\b(up|(?:fleetbook|nodejs|process)_\w+)(?:\{([^}]*)\})?/g)].map(
    ([, name = '', chosen = '']) => ({
      name,
      labels: [...chosen.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label),
    }),
  );
}

/** Returns the problems of an expression: unknown series and labels. */
function problems(expr: string): string[] {
  const series = selectorsOf(expr);
  const known = (name: string) => knownLabels.get(name) ?? OF_PROMETHEUS.get(name);
  const grouped = [...expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list = '']) =>
    list.split(',').map((label) => label.trim()),
  );
  const has = (name: string, label: string) =>
    label === '' || LABELS_OF_PROMETHEUS.includes(label) || (known(name)?.has(label) ?? false);
  return [
    ...series.filter(({ name }) => !known(name)).map(({ name }) => `nothing tells ${name}`),
    ...series.flatMap(({ name, labels }) =>
      labels.filter((label) => !has(name, label)).map((label) => `${name} has no label ${label}`),
    ),
    ...grouped
      .filter((label) => !series.some(({ name }) => has(name, label)))
      .map((label) => `no series has the label ${label}`),
  ];
}

const queries = ROWS.flatMap(({ panels }) =>
  panels.flatMap((panel) => panel.queries.map(({ expr }) => [panel.title, expr] as const)),
);

describe('the metrics of the real programs', () => {
  it.each(['worker', 'api'] as const)(
    'of the %s have names and help texts that Prometheus accepts',
    hasPromtool,
    (page) => {
      expect(promtool(['check', 'metrics'], scraped[page])).toEqual({ status: 0, output: '' });
    },
  );

  it('do not match a query with another name or label', () => {
    expect(problems('rate(fleetbook_http_requests_total{status="500"}[5m])')).toEqual([]);
    expect(problems('fleetbook_http_request')).toEqual(['nothing tells fleetbook_http_request']);
    expect(problems('rate(fleetbook_http_request_duration_seconds[5m])')).not.toEqual([]);
    expect(problems('fleetbook_source_age_seconds{id="a"}')).toEqual([
      'fleetbook_source_age_seconds has no label id',
    ]);
    expect(problems('sum by (id) (fleetbook_source_age_seconds)')).toEqual(['no series has the label id']);
  });
});

describe('the alert rules', () => {
  it.each(alertRules().map(({ alert, expr }) => [alert, expr] as const))(
    '%s: uses series of the programs',
    (_, expr) => {
      expect(selectorsOf(expr)).not.toEqual([]);
      expect(problems(expr)).toEqual([]);
    },
  );

  it('each have a test that fires and one that does not', () => {
    const checks = ruleChecks();
    for (const { alert } of alertRules()) {
      const expected = checks.filter((check) => check.alert === alert).map((check) => check.expected > 0);
      expect([alert, new Set(expected)]).toEqual([alert, new Set([true, false])]);
    }
  });

  it('are valid, and fire when they should', hasPromtool, () => {
    expect(promtool(['check', 'rules', inPackage(RULES_FILE)])).toMatchObject({ status: 0 });
    const { status, output } = promtool(['test', 'rules', inPackage(RULE_TESTS_FILE)]);
    expect(status, output).toBe(0);
  });
});

describe('the dashboard', () => {
  it.each(queries)('%s: uses series of the programs', (_, expr) => {
    expect(selectorsOf(expr)).not.toEqual([]);
    expect(problems(expr)).toEqual([]);
  });

  it('has queries that Prometheus can parse', hasPromtool, () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'fleetbook-queries-'));
    const file = join(folder.path, 'queries.yml');
    const rules = queries.map(([, expr], i) => ({
      record: `query:${i}`,
      expr: expr.replaceAll('$job', 'fleetbook').replaceAll('$__rate_interval', '5m'),
    }));
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
    const { status, output } = promtool(['check', 'rules', file]);
    expect(status, output).toBe(0);
    expect(output).toContain(`${queries.length} rules found`);
  });
});
