import { Worker } from 'node:worker_threads';
import { ownScript } from '../../config/package.ts';
import type { Made } from './make.ts';
import type { MakeThreadData, MakeThreadMessage } from './make-thread.ts';

/** MiB of the thread's heap: it has a group of rows as strings and in columns. */
const HEAP_MIB = 512;

/**
 * Makes the files of the current catalogue in a thread, unless they exist.
 * @param signal ends the thread, which then stores nothing
 * @throws Error with the reason
 */
export async function makeInThread(data: MakeThreadData, signal: AbortSignal): Promise<Made> {
  const { promise, resolve, reject } = Promise.withResolvers<Made>();
  const worker = new Worker(ownScript('src/features/exports/make-thread'), {
    workerData: data,
    name: 'exports',
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
  });
  const stop = () => void worker.terminate();
  signal.addEventListener('abort', stop);
  worker.on('message', (message: MakeThreadMessage) => {
    if (message.outcome === 'failed') reject(new Error(message.message));
    else resolve(message);
  });
  worker.on('error', reject);
  worker.on('exit', () => reject(new Error('the thread that makes the files ended')));
  try {
    if (signal.aborted) stop();
    return await promise;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
