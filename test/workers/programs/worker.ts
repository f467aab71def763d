/** A worker process configured by its environment. It must end by itself once it is disposed of. */
import { pino } from 'pino';
import { readConfig } from '../../../src/config/config.ts';
import { startWorker } from '../../../workers/main.ts';

const worker = await startWorker(readConfig(process.env), pino({ level: 'silent' }), { closeWithinMs: 500 });
process.once('SIGTERM', () => void worker[Symbol.asyncDispose]());
process.stdout.write(`${JSON.stringify({ ready: 1 })}\n`);
