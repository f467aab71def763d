/** The npm name `fleetbook` is free. An example with this name would run a program of a stranger who registers it. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { inPackage } from '../../src/config/package.ts';
import { trackedFiles } from '../support/tracked-files.ts';

const OWN = '@fleetbook/fleetbook';
/** Matches the unscoped package name in a command or import. */
const UNSCOPED = '(?<![\\w@/.<>-])fleetbook(?=["\'`\\s@]|$)';
const FORMS = [
  new RegExp(`\\b(?:npm|pnpm|yarn|bun)\\s+(?:install|i|add|exec|x|dlx)\\b[^\\n\`]*?${UNSCOPED}`, 'm'),
  new RegExp(`\\b(?:npx|bunx)\\b[^\\n\`]*?${UNSCOPED}`, 'm'),
  new RegExp(`--package[= ]${UNSCOPED}`, 'm'),
  /"(?:npx|bunx)",\s*"args": \[[^\]]*"fleetbook"/,
  /\b(?:from|import|import\(|require\()\s*['"]fleetbook(?:\/[\w./-]*)?['"]/,
  /`fleetbook\/client`/,
  /"[dD]ependencies": \{[^}]*"fleetbook":/,
];
const findForm = (text: string) => FORMS.find((form) => form.test(text));

describe('the name of the npm package', () => {
  it('is scoped', () => {
    expect(JSON.parse(readFileSync(inPackage('package.json'), 'utf8'))).toMatchObject({ name: OWN });
  });

  it('is never `fleetbook` in documentation, examples and messages', () => {
    const files = trackedFiles('*.md', '*.json', 'src', 'examples', 'Dockerfile');
    const found = files.filter((file) => findForm(readFileSync(inPackage(file), 'utf8')));
    expect(found).toEqual([]);
  });

  it.each([
    'npm install fleetbook',
    'npx fleetbook mcp',
    'npx --yes fleetbook mcp',
    'npx --package=node@26 --package=fleetbook fleetbook',
    'pnpm add -D fleetbook@0.1.0',
    '"command": "npx",\n  "args": ["--yes", "fleetbook", "mcp"]',
    "import { FleetbookClient } from 'fleetbook/client';",
    "const { createReader } = await import('fleetbook');",
    '"dependencies": { "fastify": "5", "fleetbook": "^0.1.0" }',
  ])('is found in %j', (text) => {
    expect(findForm(text)).toBeDefined();
  });

  it.each([
    ['README.md', 'fleetbook'],
    ['docs/client.md', 'client'],
    ['docs/embedding.md', 'fleetbook'],
    ['docs/mcp.md', 'mcp'],
  ])('%s says that the package is not yet published', (page, name) => {
    const text = readFileSync(inPackage(page), 'utf8').replaceAll(/\s+/g, ' ');
    expect(text).toContain(`\`@fleetbook/${name}\` is not yet published`);
  });
});
