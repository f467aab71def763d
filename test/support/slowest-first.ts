import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The slowest test files, in descending order of their time. */
const SLOWEST = [
  'test/faults/oracle.system.test.ts',
  'test/cli/read-only.test.ts',
  'test/snapshot/read/serve-dump.system.test.ts',
  'test/app/processes/up.system.test.ts',
];

/** Starts the slowest test files first, so that none of them runs alone at the end. */
export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const place = ({ moduleId }: TestSpecification) => {
      const index = SLOWEST.findIndex((path) => moduleId.endsWith(path));
      return index === -1 ? SLOWEST.length : index;
    };
    return sorted.sort((a, b) => place(a) - place(b));
  }
}
