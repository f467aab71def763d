import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { updatedReadme } from '../docs/generate.ts';
import { inPackage } from '../src/package.ts';

it('lists every setting in the README as it is in the code (npm run docs)', () => {
  const readme = readFileSync(inPackage('README.md'), 'utf8');
  expect(readme).toBe(updatedReadme(readme));
});
