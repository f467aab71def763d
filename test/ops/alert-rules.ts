/** The shipped alert rules, unchanged from the file. */
import { readFileSync } from 'node:fs';
import { loadYaml } from '@kubernetes/client-node/dist/yaml.js';
import { inPackage } from '../../src/config/package.ts';

export const RULES_FILE = 'docs/monitoring/alerts.yml';
export const RULE_TESTS_FILE = 'docs/monitoring/alerts.test.yml';

export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

export function alertRules(): readonly AlertRule[] {
  const { groups } = yaml<{ groups: { rules: AlertRule[] }[] }>(RULES_FILE);
  return groups.flatMap(({ rules }) => rules);
}

/** The tests of the rules: the alert of each check, and the number of expected alerts. */
export function ruleChecks(): readonly { readonly alert: string; readonly expected: number }[] {
  const { tests } = yaml<{
    tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[];
  }>(RULE_TESTS_FILE);
  return tests
    .flatMap((each) => each.alert_rule_test)
    .map(({ alertname, exp_alerts }) => ({ alert: alertname, expected: exp_alerts.length }));
}

function yaml<T>(file: string): T {
  return loadYaml<T>(readFileSync(inPackage(file), 'utf8'));
}
