/**
 * Acquires the lock in its argument at the agreed moment, reports whether it has it, and holds it until the process
 * ends.
 */
import { takeLock } from '../../../src/dev/lock.ts';

const [path = '', at = '0'] = process.argv.slice(2);
while (Date.now() < Number(at));
let got: 0 | 1 = 0;
let takenOver = 0;
try {
  takenOver = Number(takeLock(path).takenOver);
  got = 1;
} catch {
  got = 0;
}
process.stdout.write(`${JSON.stringify({ got, takenOver })}\n`);
setInterval(() => {}, 60_000);
