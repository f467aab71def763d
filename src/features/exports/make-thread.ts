/** The thread in which files are made: to write a million rows takes many seconds, which nothing else may wait for. */
import { parentPort, workerData } from 'node:worker_threads';
import { openStore } from '../../db/connection/connect.ts';
import { messageOf } from '../../lib/driver-error.ts';
import { type Made, makeExports } from './make.ts';

export interface MakeThreadData {
  readonly url: string;
  readonly directUrl: string;
  readonly folder: string;
}

/** What the thread says, once. An error itself may hold what it wanted to write. */
export type MakeThreadMessage = Made | { readonly outcome: 'failed'; readonly message: string };

const { url, directUrl, folder } = workerData as MakeThreadData;
const applicationName = 'fleetbook exports';

async function make(): Promise<MakeThreadMessage> {
  await using store = openStore({ url, directUrl, role: 'worker', connections: 1, applicationName });
  try {
    return await makeExports({ store, folder });
  } catch (error) {
    return { outcome: 'failed', message: messageOf(error) };
  }
}

parentPort?.postMessage(await make());
