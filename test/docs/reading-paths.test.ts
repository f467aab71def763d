/** The reading paths of the architecture: each file exists, and a path stays short enough to be read. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { inPackage } from '../../src/config/package.ts';

const PAGE = readFileSync(inPackage('docs/ARCHITECTURE.md'), 'utf8');
const [, section = ''] = /^## Reading paths$(.*?)^## /ms.exec(PAGE) ?? [];

const PATHS = section
  .split(/^### /m)
  .slice(1)
  .map((text) => {
    const [title = '', ...lines] = text.split('\n');
    return { title, steps: lines.filter((line) => /^\d+\. /.test(line)) };
  });

describe('the reading paths', () => {
  it('answer four questions', () => expect(PATHS.length).toBe(4));

  it.each(PATHS)('$title: has a file for each step', ({ steps }) => {
    expect(steps.length).toBeGreaterThanOrEqual(8);
    expect(steps.length).toBeLessThanOrEqual(13);
    for (const [i, step] of steps.entries()) {
      const [, number, path = ''] = /^(\d+)\. `([^`]+)`/.exec(step) ?? [];
      expect(Number(number)).toBe(i + 1);
      expect(existsSync(inPackage(path)), path).toBe(true);
    }
  });
});
