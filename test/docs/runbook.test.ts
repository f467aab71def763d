import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DASHBOARD_FILE, dashboardText } from '../../docs/generate/dashboard.ts';
import { inPackage } from '../../src/config/package.ts';
import { alertRules } from '../ops/alert-rules.ts';
import { findCommand } from './find-command.ts';

const page = readFileSync(inPackage('docs/runbook.md'), 'utf8');
/** The section of each alert, by its name. */
const sections = new Map(
  page
    .split(/^## /m)
    .filter((text) => text.startsWith('Fleetbook'))
    .map((text) => [text.slice(0, text.indexOf('\n')), text.split(/^# /m)[0] ?? '']),
);

it('the dashboard file matches docs/generate (npm run docs updates it)', () => {
  expect(readFileSync(inPackage(DASHBOARD_FILE), 'utf8')).toBe(dashboardText());
});

describe('the runbook', () => {
  it('has one section for each alert and no other section', () => {
    expect([...sections.keys()]).toEqual(alertRules().map(({ alert }) => alert));
  });

  it('is the target of the link in each alert', () => {
    for (const { alert, annotations } of alertRules())
      expect(annotations.runbook_url).toBe(`docs/runbook.md#${alert.toLowerCase()}`);
  });

  it.each([...sections])('%s: explains the meaning, the checks and the remedy', (_, text) => {
    for (const part of ['**Means.**', '**Check', '**Do.**']) {
      if (part === '**Do.**' && text.includes('**do** as')) continue;
      expect(text).toContain(part);
    }
  });

  const commands = [...new Set([...page.matchAll(/`fleetbook ([^`]+)`/g)].map(([, words = '']) => words))];

  it('names commands', () => expect(commands.length).toBeGreaterThan(10));

  it.each(commands)('names an existing command with valid arguments: fleetbook %s', (line) => {
    const { command, rest: words } = findCommand(line);
    expect(command.commands, `${line} is not a command`).toEqual([]);
    for (const option of words.filter((word) => word.startsWith('--')))
      expect(command.options.map(({ long }) => long)).toContain(option);
    const first = words.findIndex((word) => word.startsWith('--'));
    const given = first < 0 ? words.length : first;
    expect(given).toBeLessThanOrEqual(command.registeredArguments.length);
    // The page may name a command without its arguments.
    if (given > 0)
      expect(given).toBeGreaterThanOrEqual(
        command.registeredArguments.filter(({ required }) => required).length,
      );
  });
});
