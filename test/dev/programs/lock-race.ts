/**
 * Takes the lock in its argument as often as it can until the agreed moment, and leaves it behind each time as one who
 * died there: by the identity of a process that never was. Says how often it took it over, and how often somebody else
 * held it too.
 */
import { closeSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { takeLock } from '../../../src/dev/lock.ts';

const [path = '', until = '0'] = process.argv.slice(2);
const held = `${path}-held`;
let taken = 0;
let together = 0;
while (Date.now() < Number(until)) {
  try {
    takeLock(path);
  } catch {
    continue;
  }
  taken += 1;
  try {
    closeSync(openSync(held, 'wx'));
    rmSync(held);
  } catch {
    together += 1;
  }
  const dead = `${path}-dead-${process.pid}`;
  writeFileSync(dead, JSON.stringify({ pid: 2 ** 22 + 1, started: `${process.pid} ${taken}` }));
  renameSync(dead, path);
}
process.stdout.write(`${JSON.stringify({ taken, together })}\n`);
