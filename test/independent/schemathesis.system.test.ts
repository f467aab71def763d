/** schemathesis sends thousands of valid and invalid requests, and compares the answers with `/openapi.json`. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { findProgram } from '../../src/processes/find-program.ts';
import { needs } from '../support/needs.ts';
import { until } from '../support/until.ts';
import { startUp, temporaryHome } from '../support/up.ts';

const run = promisify(execFile);
const FOLDER = join(import.meta.dirname, 'schemathesis');
const REQUESTS = 5000;
/** Of random requests for each operation. With the systematic ones they are more than `REQUESTS`. */
const RANDOM_REQUESTS = 500;

describe('schemathesis', needs(findProgram('schemathesis') !== undefined, 'the program schemathesis'), () => {
  it(`finds nothing with ${REQUESTS} requests`, async () => {
    await using home = await temporaryHome();
    await using up = await startUp(home.path);
    // A 503 before the first files are made counts as an error of the server.
    await until(async () => (await up.get('/v1/exports')).status === 200);
    const { stdout } = await run(
      'schemathesis',
      [
        ...[
          '--config-file',
          join(FOLDER, 'schemathesis.toml'),
          '--no-color',
          'run',
          `${up.url}/openapi.json`,
        ],
        ...['--max-examples', String(RANDOM_REQUESTS), '--request-timeout', '60'],
      ],
      {
        cwd: home.path,
        env: { ...process.env, PYTHONPATH: FOLDER, PYTHONDONTWRITEBYTECODE: '1', FLEETBOOK_TOKEN: up.token },
        maxBuffer: 64 * 2 ** 20,
      },
    ).catch((error: { stdout?: string; stderr?: string }) => {
      throw new Error(`schemathesis found:\n${error.stdout}\n${error.stderr}`);
    });
    expect(stdout).toContain('No issues found');
    const [, tested, all] = /Selected: (\d+)\/\d+\s+Tested: (\d+)/.exec(stdout) ?? [];
    expect(tested).toBe(all);
    const [, generated, passed] = /(\d+) generated, (\d+) passed/.exec(stdout) ?? [];
    expect(passed).toBe(generated);
    expect(Number(passed)).toBeGreaterThanOrEqual(REQUESTS);
  }, 1_200_000);
});
