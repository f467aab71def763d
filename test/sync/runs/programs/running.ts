/** A process with a live run of the source `s`, until it is killed. */

import { openStore } from '../../../../src/db/connection/connect.ts';
import { LiveRuns } from '../../../../src/sync/runs/live.ts';

const store = openStore({ url: process.argv[2] ?? '', role: 'worker' });
const { run } = await new LiveRuns(store.connection).begin('s', undefined);
process.stdout.write(`${JSON.stringify({ run: run.id })}\n`);
setInterval(() => {}, 1000);
