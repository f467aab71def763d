/**
 * A supervised process. Its environment controls it: LOG gets a line for each start, READY_AFTER_LIVES counts the
 * starts that end before it is ready, HOPELESS is its permanent error, IGNORES_SIGTERM makes it ignore SIGTERM.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { onParentExit, reportFailure, reportReady } from '../../../src/processes/ipc.ts';

const { LOG = '', NAME = 'child', READY_AFTER_LIVES = '0', IGNORES_SIGTERM, SILENT, HOPELESS } = process.env;
const note = (what: string) => appendFileSync(LOG, `${NAME} ${what}\n`);
note(`lives ${process.pid}`);

const life = readFileSync(LOG, 'utf8')
  .split('\n')
  .filter((line) => line.startsWith(`${NAME} lives`)).length;
if (life <= Number(READY_AFTER_LIVES)) process.exit(3);

if (HOPELESS) {
  await reportFailure(HOPELESS);
  process.exit(1);
}
const alive = setInterval(() => {}, 60_000);
process.on('SIGTERM', () => {
  if (IGNORES_SIGTERM) return;
  note('stops');
  clearInterval(alive);
});
onParentExit(() => {
  note('is alone');
  clearInterval(alive);
});
if (!SILENT) reportReady({ life });
