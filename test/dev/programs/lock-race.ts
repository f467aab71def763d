/**
 * Reports that it is ready, waits for the file in its second argument, and acquires the lock in its first as often as
 * its third states. Each time it leaves the lock as a dead process does, with the identity of a process that never
 * existed. In the end it reports how often another process also held the lock.
 */
import { closeSync, existsSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { takeLock } from '../../../src/dev/lock.ts';

const [path = '', start = '', times = '0'] = process.argv.slice(2);
const held = `${path}-held`;
let taken = 0;
let together = 0;
process.stdout.write('{"ready":1}\n');
while (!existsSync(start));
while (taken < Number(times)) {
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
process.stdout.write(`${JSON.stringify({ together })}\n`);
