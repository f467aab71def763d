/** Keeps one child.ts and says which process it is. */
import { join } from 'node:path';
import { pino } from 'pino';
import { keepProcesses } from '../../../src/processes/processes.ts';

const processes = keepProcesses({ log: pino({ level: 'silent' }) });
await processes.start({ name: 'child', script: join(import.meta.dirname, 'child.ts') });
process.stdout.write(`${JSON.stringify({ pid: processes.pidOf('child') ?? 0 })}\n`);
