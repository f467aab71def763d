/** `npm run fuzz -- --minutes N [--seed S]`: the fuzz tests for the given time, on the same servers. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');
const { values, positionals } = parseArgs({
  options: { minutes: { type: 'string', default: '10' }, seed: { type: 'string' } },
  allowPositionals: true,
});
const minutes = Number(values.minutes);
if (!(minutes > 0)) {
  process.stderr.write(`--minutes is ${values.minutes}; give a number above 0\n`);
  process.exit(2);
}
if (values.seed !== undefined && !/^\d+$/.test(values.seed)) {
  process.stderr.write(`--seed is ${values.seed}; give the whole number that a run has printed\n`);
  process.exit(2);
}
const files = positionals.length > 0 ? positionals : ['test/fuzz'];
const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
const child = spawn(process.execPath, [vitest, 'run', '--project', 'system', ...files], {
  cwd: ROOT,
  stdio: 'inherit',
  env: {
    ...process.env,
    FUZZ_MINUTES: String(minutes),
    LONG_RANDOM: '1',
    ...(values.seed === undefined ? {} : { RANDOM_SEED: values.seed }),
  },
});
// The tests receive Ctrl-C directly: they end with their servers, and then this process ends.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => child.kill('SIGTERM'));
const [code] = (await once(child, 'close')) as [number | null];
process.exitCode = code ?? 1;
