/** The workflows of GitHub: what can be checked without GitHub, and the findings of the tools that are installed. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { findingsOf, TOOLS, trackedFiles } from '../../release/check-workflows.ts';
import { inPackage } from '../../src/config/package.ts';
import { findProgram } from '../../src/processes/find-program.ts';
import { needs } from '../support/needs.ts';

const FOLDER = '.github/workflows';
const WORKFLOWS = readdirSync(inPackage(FOLDER)).map((name) => ({
  name,
  text: readFileSync(inPackage(`${FOLDER}/${name}`), 'utf8'),
}));
const { scripts } = JSON.parse(readFileSync(inPackage('package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>;
};

/** Returns the jobs of a workflow with their lines. The files have two spaces for each level. */
function jobsOf(text: string): { name: string; lines: string }[] {
  const [, jobs = ''] = text.split(/^jobs:\n/m);
  const parts = jobs.split(/^ {2}([\w-]+):\n/m).slice(1);
  return parts.flatMap((name, index) => (index % 2 === 0 ? [{ name, lines: parts[index + 1] ?? '' }] : []));
}

/** Returns the violations of the rules for workflows. */
function problemsOf(text: string): string[] {
  const problems: string[] = [];
  for (const [, used = ''] of text.matchAll(/^\s*(?:- )?uses: (.*)$/gm))
    if (!/^[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*$/.test(used))
      problems.push(`${used}: an action needs the 40 digits of a commit and its version as a comment`);
  for (const [, script = ''] of text.matchAll(/\bnpm run (?:--silent )?([\w:.-]+)/g))
    if (scripts[script] === undefined) problems.push(`npm run ${script}: package.json has no such script`);
  for (const [, path = ''] of text.matchAll(/\b(?:bash|node) ([\w./-]+\.(?:sh|mjs|ts))/g))
    if (!existsSync(inPackage(path))) problems.push(`${path} does not exist`);
  const isReadOnly = /^permissions:\n {2}contents: read\n(?! )/m.test(text);
  if (!isReadOnly && !/^permissions: \{\}$/m.test(text))
    problems.push('the workflow needs `permissions: {}` or only `contents: read` at the top');
  if (/\bpull_request_target\b|\bwrite-all\b/.test(text))
    problems.push('pull_request_target and write-all give strangers rights');
  for (const { name, lines } of jobsOf(text)) {
    if (!/^ {4}timeout-minutes: \d+$/m.test(lines)) problems.push(`the job ${name} needs timeout-minutes`);
    if (!isReadOnly && !/^ {4}permissions:( \{\})?$/m.test(lines))
      problems.push(`the job ${name} needs permissions`);
    if (/^\s+(?:- )?run:.*\$\{\{/m.test(lines))
      problems.push(`the job ${name} has an expression in a command; give it as a variable of env`);
  }
  return problems;
}

describe('a workflow', () => {
  it.each(WORKFLOWS)('$name keeps the rules', ({ text }) => {
    expect(jobsOf(text).length).toBeGreaterThan(0);
    expect(problemsOf(text)).toEqual([]);
  });

  it('is rejected with every violation', () => {
    const bad = `on: pull_request_target
permissions:
  contents: write
jobs:
  one:
    steps:
      - uses: actions/checkout@v6
      - run: npm run nothing && bash release/nothing.sh
      - run: echo \${{ github.ref }}
`;
    expect(problemsOf(bad)).toEqual([
      expect.stringContaining('actions/checkout@v6: an action needs the 40 digits'),
      expect.stringContaining('npm run nothing'),
      'release/nothing.sh does not exist',
      expect.stringContaining('at the top'),
      expect.stringContaining('pull_request_target'),
      'the job one needs timeout-minutes',
      'the job one needs permissions',
      expect.stringContaining('an expression in a command'),
    ]);
  });
});

it('all workflows use one commit of each action', () => {
  const commits = new Map<string, Set<string>>();
  for (const { text } of WORKFLOWS)
    for (const [, action = '', commit = ''] of text.matchAll(
      /uses: ([\w.-]+\/[\w.-]+)[\w./-]*@([0-9a-f]{40})/g,
    ))
      commits.set(action, (commits.get(action) ?? new Set()).add(commit));
  expect(commits.size).toBeGreaterThan(5);
  for (const [action, found] of commits) expect([...found], action).toHaveLength(1);
});

describe.each([...TOOLS])('$name', (tool) => {
  it(
    'finds nothing',
    needs(findProgram(tool.name) !== undefined, `${tool.name} on the PATH: ${tool.install}`),
    () => {
      expect(findingsOf(tool, trackedFiles())).toBe('');
    },
  );
});
