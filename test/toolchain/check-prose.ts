/**
 * Checks that documentation and comments are plain English: `npm run check:prose [-- path…]`. Each part of the repository
 * has a limit of findings for each 1,000 lines of prose. A part above its limit fails and prints every finding.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Name, pattern and remedy of each rule. */
export const RULES: readonly (readonly [string, RegExp, string])[] = [
  [
    'clause as subject',
    /(^|[.:;] )(What|Whatever|Who|Whoever|Whose) [a-z]+ [^.?]*\b(is|are|was|has|have|gets?|stays?)\b[^?]*$/,
    'Start with the thing itself: "The worker …", "The batch …".',
  ],
  ['nameless actor', /\b(whom?ever|(no|some|any|every)body)\b/i, 'Name the actor: the operator, the worker.'],
  [
    'told or heard of',
    /\b(tells?|told|hears?|heard|says?|said|speaks?|knows?|asked) of\b|\b(is|are|was|were|be|been) told\b/i,
    'Use notify, receive, report or state.',
  ],
  [
    'stands or lies',
    /\b(stands?|stood|lies|lay) (there|here|in|on|beside|behind|by)\b/i,
    'Use is, has, contains or is stored in.',
  ],
  [
    'as it is',
    /\bas (it|they|these|those) (is|are|was|were|has|have|does|do|comes?)\b/i,
    'Use unchanged, or name the state.',
  ],
  [
    'none as a predicate',
    /\b(that|which|it) is none\b|\bare none\b|\b(will|would) do[.,;]|\bis no one\b/i,
    'Use "is not a …", or state the positive case.',
  ],
  [
    'which clause',
    /\b(of|by|from) (which|whom)\b|\bof (its|their|our) own\b/i,
    'Write two sentences, or use "own …".',
  ],
  [
    'archaic word',
    /\b(anew|beside|meanwhile|hence|thereby|thereof|wherein|whereof|likewise|elsewise|ere)\b/i,
    'Use again, next to, during this time or so.',
  ],
  [
    'verb before subject',
    /(^|[.;:] )(Of|Only then|By that|To that|Nor|Else|Never) [^.,;]{2,50} (is|are|was|does|do|has|can|may|must) (it|they|he|we|each|all)\b/,
    'Put the subject first.',
  ],
  [
    'vague verb',
    /\blook(s|ed|ing)? (at|whether|after|again)\b|\bmend(s|ed|ing)?\b|\btakes? (its|the) place\b|\bbrings? (up|back|about)\b/i,
    'Use check, read, fix, repair, replace or restore.',
  ],
];
const MOST_WORDS = 45;

const PARTS: readonly { readonly paths: readonly string[]; readonly limit: number }[] = [
  { paths: ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'examples'], limit: 0 },
  { paths: ['test/docs', 'test/toolchain', 'packages/*/README.md'], limit: 0 },
  { paths: ['docs'], limit: 5 },
  { paths: ['src', 'workers', 'packages'], limit: 10 },
  { paths: ['test', 'bench'], limit: 5 },
];

/** Returns the prose of each line: Markdown text or comments, without code and addresses. */
export function proseLines(content: string, isMarkdown: boolean): (string | undefined)[] {
  let isCode = false;
  return content.split('\n').map((line) => {
    if (isMarkdown && /^\s*```/.test(line)) isCode = !isCode;
    if (isCode || (isMarkdown && /^\s*(```|<)/.test(line))) return undefined;
    const comment = /(?:^\s*(?:\/\*\*?|\*(?!\/)|\/\/)|\s\/\/ )(.*?)(?:\*\/\s*)?$/.exec(line);
    const text = (isMarkdown ? line : comment?.[1])
      ?.replaceAll(/`[^`]*`/g, 'CODE')
      .replaceAll(/\]\([^)]*\)/g, ']')
      .replace(/^[\s|#>*-]+|^\s*\d+\. /, '')
      .trim();
    return text === '' ? undefined : text;
  });
}

/** Returns one line of text for each violation of a rule. */
export function findings(file: string, content: string): string[] {
  const found: string[] = [];
  let sentence = '';
  for (const [index, text] of proseLines(content, file.endsWith('.md')).entries()) {
    const report = (rule: string, remedy: string) =>
      found.push(`${file}:${index + 1} ${rule}: ${text}\n    ${remedy}`);
    const broken = RULES.find(([, pattern]) => text !== undefined && pattern.test(text));
    if (broken !== undefined) report(broken[0], broken[2]);
    const [end = '', ...others] = (text ?? '.').split(/[.;:?!|](?=\s|$)/);
    sentence += ` ${end}`;
    const isLong = sentence.split(/\s+/).length > MOST_WORDS;
    if (isLong) report('long sentence', 'Write one idea a sentence.');
    if (others.length > 0 || isLong) sentence = others.at(-1) ?? '';
  }
  return found;
}

function check(paths: readonly string[], limit: number): void {
  const files = execFileSync('git', ['ls-files', '-z', '--', ...paths], { encoding: 'utf8' })
    .split('\0')
    .filter((name) => /\.(ts|tsx|mjs|md)$/.test(name));
  const contents = files.map((file) => [file, readFileSync(file, 'utf8')] as const);
  const lines = contents.flatMap(([file, content]) => proseLines(content, file.endsWith('.md')));
  const prose = lines.filter((text) => text !== undefined).length;
  const found = contents.flatMap(([file, content]) => findings(file, content));
  if (found.length * 1000 <= limit * prose) return;
  console.error(found.join('\n'));
  console.error(`${paths.join(', ')}: ${found.length} findings in ${prose} lines, limit ${limit} in 1,000`);
  process.exitCode = 1;
}

if (import.meta.main) {
  const given = process.argv.slice(2);
  const parts = given.length > 0 ? [{ paths: given, limit: 0 }] : PARTS;
  for (const { paths, limit } of parts) check(paths, limit);
}
