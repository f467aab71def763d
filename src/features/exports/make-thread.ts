/** The thread that makes files. A million rows take many seconds, and nothing else may wait for them. */
import { parentPort, workerData } from 'node:worker_threads';
import { openStore } from '../../db/connection/connect.ts';
import { messageOf } from '../../domain/errors.ts';
import { type Made, makeExports } from './make.ts';

export interface MakeThreadData {
  readonly url: string;
  readonly directUrl: string;
  readonly folder: string;
}

/** The one message of the thread. It has no error object: that could contain rows. */
export type MakeThreadMessage = Made | { readonly outcome: 'failed'; readonly message: string };

const { url, directUrl, folder } = workerData as MakeThreadData;
const applicationName = 'fleetbook exports';

async function make(): Promise<MakeThreadMessage> {
  await using store = openStore({ url, directUrl, role: 'worker', connections: 1, applicationName });
  try {
    return await makeExports(store, folder);
  } catch (error) {
    return { outcome: 'failed', message: messageOf(error) };
  }
}

parentPort?.postMessage(await make());
