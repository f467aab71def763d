/** What is shipped for Prometheus, against what the real programs tell it. */
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { onPath } from '../../src/processes/on-path.ts';
import { needs, PROMTOOL } from '../support/needs.ts';
import { scrapePrograms } from './scraped.ts';

const promtool = onPath('promtool');
const scraped = await scrapePrograms();

it.each(['worker', 'api'] as const)(
  'the metrics of the %s have names and help as Prometheus wants them',
  needs(promtool !== undefined, PROMTOOL),
  (program) => {
    const input = scraped[program];
    const { status, stdout, stderr } = spawnSync(promtool ?? '', ['check', 'metrics'], {
      input,
      encoding: 'utf8',
    });
    expect(stdout + stderr).toBe('');
    expect(status).toBe(0);
  },
);
