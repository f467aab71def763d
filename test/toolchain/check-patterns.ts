/**
 * Checks that no regular expression can backtrack for long: `node test/toolchain/check-patterns.ts [path…]`. A text from an upstream or a
 * client could otherwise block the process. Patterns that are composed at run time are not checked: build them from words.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { Linter } from 'eslint';
import regexp from 'eslint-plugin-regexp';
import { parseSync } from 'rolldown/utils';

const RULES = {
  'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
  'regexp/no-super-linear-move': 'error',
} as const;

interface Pattern {
  /** `src/domain/token.ts:12` */
  readonly place: string;
  readonly text: string;
}

function patternsIn(path: string, code: string): Pattern[] {
  const { program, errors } = parseSync(path, code);
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);
  const found: Pattern[] = [];
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    if ('regex' in node && 'start' in node && 'end' in node && node.regex) {
      const [start, end] = [Number(node.start), Number(node.end)];
      found.push({
        place: `${path}:${code.slice(0, start).split('\n').length}`,
        text: code.slice(start, end),
      });
    }
    for (const value of Object.values(node)) visit(value);
  };
  visit(program);
  return found;
}

/** Returns one line for each pattern that can backtrack for long. @param files their text by path */
export function findings(files: Readonly<Record<string, string>>): string[] {
  const patterns = Object.entries(files).flatMap(([path, code]) => patternsIn(path, code));
  const config = {
    plugins: { regexp },
    linterOptions: { noInlineConfig: true },
    languageOptions: { ecmaVersion: 'latest', sourceType: 'module' },
    rules: RULES,
  } as const;
  const code = patterns.map(({ text }) => `${text};`).join('\n');
  return new Linter().verify(code, [config as unknown as Linter.Config]).map(({ line, message }) => {
    const { place, text } = patterns[line - 1] ?? { place: 'unknown', text: '' };
    return `${place} ${text}\n    ${message}`;
  });
}

function main(given: readonly string[]): void {
  const paths = given.length > 0 ? given : ['src', 'workers', 'packages', 'release', 'site', 'docs/generate'];
  const all = execFileSync(
    'git',
    ['ls-files', '--cached', '--others', '--exclude-standard', '--', ...paths],
    {
      encoding: 'utf8',
    },
  );
  const names = all.split('\n').filter((path) => /\.(ts|tsx|mjs)$/.test(path));
  const files = names.flatMap((path) => {
    try {
      return [[path, readFileSync(path, 'utf8')] as const];
    } catch {
      // Deleted, and not yet staged.
      return [];
    }
  });
  const found = findings(Object.fromEntries(files));
  for (const each of found) console.error(each);
  if (found.length === 0) return;
  console.error(
    `\n${found.length} patterns can backtrack for long. Give neighbouring quantifiers characters without overlap, or read the text without a pattern.`,
  );
  process.exitCode = 1;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) main(process.argv.slice(2));
