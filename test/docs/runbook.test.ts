import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { DASHBOARD_FILE, dashboardText } from '../../docs/generate/dashboard.ts';
import { addCommands } from '../../src/cli/commands.ts';
import { inPackage } from '../../src/config/package.ts';
import { alertRules } from '../support/alert-rules.ts';

const page = readFileSync(inPackage('docs/runbook.md'), 'utf8');
/** Sections of alerts, by their names. */
const sections = new Map(
  page
    .split(/^## /m)
    .filter((text) => text.startsWith('Fleetbook'))
    .map((text) => [text.slice(0, text.indexOf('\n')), text.split(/^# /m)[0] ?? '']),
);

it('the dashboard is what its source says (npm run docs)', () => {
  expect(readFileSync(inPackage(DASHBOARD_FILE), 'utf8')).toBe(dashboardText());
});

describe('the runbook', () => {
  it('has a section for each alert, and for nothing else', () => {
    expect([...sections.keys()]).toEqual(alertRules().map(({ alert }) => alert));
  });

  it('is where each alert sends its reader', () => {
    for (const { alert, annotations } of alertRules())
      expect(annotations.runbook_url).toBe(`docs/runbook.md#${alert.toLowerCase()}`);
  });

  it.each([...sections])('%s: says what it means, what to look at and what to do', (_, text) => {
    for (const part of ['**Means.**', '**Look at', '**Do.**']) {
      if (part === '**Do.**' && text.includes('**do** as')) continue;
      expect(text).toContain(part);
    }
  });

  it('links to sections and files that there are', () => {
    const headings = [...page.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) => title.toLowerCase());
    for (const [, target = ''] of page.matchAll(/\]\(([^)]+)\)/g)) {
      if (target.startsWith('#')) expect(headings).toContain(target.slice(1));
      else expect(() => readFileSync(inPackage(`docs/${target}`)), target).not.toThrow();
    }
  });

  const program = new Command('fleetbook');
  addCommands(program, {});
  const commands = [...new Set([...page.matchAll(/`fleetbook ([^`]+)`/g)].map(([, words = '']) => words))];

  it('names commands', () => expect(commands.length).toBeGreaterThan(10));

  it.each(commands)('names a command that the program has, with such arguments: fleetbook %s', (line) => {
    const words = line.split(' ');
    let command = program;
    for (;;) {
      const next = command.commands.find((each) => each.name() === words[0]);
      if (!next) break;
      command = next;
      words.shift();
    }
    expect(command.commands, `${line} is no command`).toEqual([]);
    for (const option of words.filter((word) => word.startsWith('--')))
      expect(command.options.map(({ long }) => long)).toContain(option);
    const first = words.findIndex((word) => word.startsWith('--'));
    const given = first < 0 ? words.length : first;
    expect(given).toBeLessThanOrEqual(command.registeredArguments.length);
    // A command that is only named may leave its arguments out.
    if (given > 0)
      expect(given).toBeGreaterThanOrEqual(
        command.registeredArguments.filter(({ required }) => required).length,
      );
  });
});
