import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { ownScript } from '../../config/package.ts';
import type { Made } from './make.ts';
import type { MakeThreadData, MakeThreadMessage } from './make-thread.ts';

/** MiB of the thread's heap: it has a group of rows as strings and in columns. */
const HEAP_MIB = 512;

/** @param signal ends the thread, which then stores nothing @throws Error with the reason */
export async function makeInThread(data: MakeThreadData, signal: AbortSignal): Promise<Made> {
  const worker = new Worker(ownScript('src/features/exports/make-thread'), {
    workerData: data,
    name: 'exports',
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
  });
  try {
    const ended = once(worker, 'exit').then(() => {
      throw new Error('the thread that makes the files ended');
    });
    const [message]: MakeThreadMessage[] = await Promise.race([once(worker, 'message', { signal }), ended]);
    if (message?.outcome === 'failed') throw new Error(message.message);
    return message as Made;
  } finally {
    await worker.terminate();
  }
}
