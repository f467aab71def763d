import { execFileSync, spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { findProgram } from '../../src/processes/find-program.ts';
import { needs } from '../support/needs.ts';

const TERMINAL = findProgram('script');
const LOG = new URL('../../src/app/logger.ts', import.meta.url).pathname;
const WARNS = `import { openLogger } from "${LOG}"; openLogger({ LOG_LEVEL: "warn" }, "work").warn({ use: "reader" }, "Redis is away");`;

describe('the log', () => {
  it('is JSON if standard error is not a terminal', () => {
    const { stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', WARNS], {
      encoding: 'utf8',
    });
    expect(JSON.parse(stderr)).toMatchObject({
      level: 40,
      name: 'work',
      use: 'reader',
      msg: 'Redis is away',
    });
  });

  it(
    'is readable text if standard error is a terminal',
    needs(process.platform === 'linux' && TERMINAL !== undefined, 'Linux, and the program script'),
    () => {
      const command = `'${process.execPath}' --input-type=module -e '${WARNS}'`;
      const env = { PATH: process.env.PATH, TERM: 'xterm', NO_COLOR: '1' };
      const shown = execFileSync(TERMINAL ?? '', ['-qec', command, '/dev/null'], { encoding: 'utf8', env });
      expect(shown).toMatch(/^\d\d:\d\d:\d\d work\[\d+\] warn {2}Redis is away \(use=reader\)\r?\n$/);
    },
  );
});
