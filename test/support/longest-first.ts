import { readFileSync } from 'node:fs';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The order of files: the longest first, so that none of them is alone at the end. vitest has durations of earlier runs. A new clone
 * has none: there the files whose tests may take longest begin, and then the largest.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    if (files.every((file) => this.ctx.cache.getTestSpecificationResult(file) !== undefined)) return sorted;
    const timeouts = new Map(files.map((file) => [file, longestTimeout(file)]));
    const timeout = (file: TestSpecification) => timeouts.get(file) ?? 0;
    const order = ({ project }: TestSpecification) => project.config.sequence.groupOrder;
    return sorted.toSorted(
      (one, other) =>
        order(one) - order(other) ||
        one.project.name.localeCompare(other.project.name) ||
        timeout(other) - timeout(one),
    );
  }
}

/** Returns the largest timeout in milliseconds that a test of the file states; 0 without one. */
function longestTimeout({ moduleId }: TestSpecification): number {
  const stated = readFileSync(moduleId, 'utf8').matchAll(/(?:\btimeout: |^\s*\}, )(\d{1,3}(?:_\d{3})+)\b/gm);
  return Math.max(0, ...Array.from(stated, ([, text = '']) => Number(text.replaceAll('_', ''))));
}
