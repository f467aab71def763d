/** Supervises one child.ts and prints its process id. */
import { join } from 'node:path';
import { pino } from 'pino';
import { startChild } from '../../../src/processes/child-process.ts';
import { Supervisor } from '../../../src/processes/supervisor.ts';

const supervisor = new Supervisor({ log: pino({ level: 'silent' }) });
const script = join(import.meta.dirname, 'child.ts');
await supervisor.start('child', () => startChild({ script, env: process.env }));
process.stdout.write(`${JSON.stringify({ pid: supervisor.pidOf('child') ?? 0 })}\n`);
