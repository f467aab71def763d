/** A worker process that watches the plane at PLANE_URL. It must end by itself once it is disposed of. */
import { pino } from 'pino';
import { readConfig } from '../../../src/config/config.ts';
import { startWorker } from '../../../workers/main.ts';
import { planeSource } from '../plane.ts';

const config = { ...readConfig(process.env), sources: [planeSource(String(process.env.PLANE_URL))] };
const worker = await startWorker(config, pino({ level: 'silent' }), { closeWithinMs: 5000 });
process.once('SIGTERM', () => void worker[Symbol.asyncDispose]());
process.stdout.write(`${JSON.stringify({ ready: 1 })}\n`);
