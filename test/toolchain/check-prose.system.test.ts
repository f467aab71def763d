import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findings, proseLines, RULES } from './check-prose.ts';

const SENTENCES: Readonly<Record<string, readonly [bad: string, good: string]>> = {
  'clause as subject': [
    'What is stored before the commit is lost.',
    'The worker loses rows that it stored before the commit.',
  ],
  'nameless actor': ['Whoever holds the lease publishes.', 'The worker that holds the lease publishes.'],
  'told or heard of': [
    'Readers hear of each publication.',
    'Readers receive a message for each publication.',
  ],
  'stands or lies': ['The number stands in the first line.', 'The first line contains the number.'],
  'as it is': ['The body leaves as it is.', 'The body leaves unchanged.'],
  'none as a predicate': ['An id that is none is refused.', 'An invalid id is refused.'],
  'which clause': ['A list of which a part is stale.', 'A list with a stale part.'],
  'archaic word': ['The document is built anew.', 'The document is built again.'],
  'verb before subject': [
    'Of clusters without an owner are they all.',
    'All clusters without an owner are listed.',
  ],
  'vague verb': ['The worker looks at the queue.', 'The worker checks the queue.'],
};
const LONG = `The reader ${'reads a document and '.repeat(12)}ends.`;

describe('the check of prose', () => {
  it('has a sample for each rule', () => {
    expect(Object.keys(SENTENCES)).toEqual(RULES.map(([name]) => name));
  });

  it.each(Object.entries(SENTENCES))(
    'finds a sentence, and accepts a better one: %s',
    (rule, [bad, good]) => {
      const [found] = findings('docs/a.md', `# Title\n\n${bad}\n`);
      expect(found).toMatch(new RegExp(`^docs/a\\.md:3 ${rule}: .+\\n    .+\\.$`));
      expect(findings('src/a.ts', `  // ${bad}\n`)).toHaveLength(1);
      expect(findings('docs/a.md', `${good}\n`)).toEqual([]);
      expect(findings('src/a.ts', `/** ${good} */\n`)).toEqual([]);
    },
  );

  it('finds a long sentence, also one of several lines', () => {
    const [found] = findings('a.md', LONG.replaceAll(' and reads', ' and\nreads'));
    expect(found).toContain('long sentence');
    expect(findings('a.md', LONG.replaceAll(' and reads', '. It\nreads'))).toEqual([]);
  });

  it('reads comments and Markdown, and no code', () => {
    expect(proseLines('const a = 1; // one\n/** Two. */\n * Three `x y`.\nfour();', false)).toEqual([
      'one',
      'Two.',
      'Three CODE.',
      undefined,
    ]);
    expect(proseLines('A [link](there).\n```sh\nnobody\n```\n| a cell |', true)).toEqual([
      'A [link].',
      undefined,
      undefined,
      undefined,
      'a cell |',
    ]);
  });

  it('fails for a part above its limit, and prints file, line, rule and remedy', () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'fleetbook-prose-'));
    const check = (content: string) => {
      writeFileSync(join(folder.path, 'README.md'), content);
      execFileSync('git', ['add', 'README.md'], { cwd: folder.path });
      const script = join(import.meta.dirname, 'check-prose.ts');
      return spawnSync(process.execPath, [script], { cwd: folder.path, encoding: 'utf8' });
    };
    execFileSync('git', ['init', '--quiet'], { cwd: folder.path });
    expect(check('The worker publishes.\n')).toMatchObject({ status: 0, stderr: '' });
    const failed = check('The worker publishes.\n\nNobody publishes.\n');
    expect(failed.status).toBe(1);
    expect(failed.stderr).toContain('README.md:3 nameless actor: Nobody publishes.\n    Name the actor');
  });
});
