/** A worker in a separate process that can be killed. Each message is the id of a source to run. */
import { pino } from 'pino';
import { readConfig } from '../../../src/config/config.ts';
import { databaseUrls } from '../../../src/config/settings.ts';
import { openStore } from '../../../src/db/connection/connect.ts';
import { latestSlot } from '../../../src/domain/schedule.ts';
import { requestAttempt } from '../../../src/sync/runs/slots.ts';
import { startWorker } from '../../../workers/main.ts';

const config = readConfig(process.env);
const store = openStore({ ...databaseUrls(config), role: 'worker', connections: 1 });
const worker = await startWorker(config, pino({ level: 'silent' }));
process.on('message', (sourceId: string) => {
  const source = config.sources.find(({ id }) => id === sourceId);
  if (!source) throw new Error(`there is no source ${sourceId}`);
  const slot = latestSlot(source.schedule, new Date());
  // Without the database nothing runs, as with a manual run.
  requestAttempt(store.db, { schedule: sourceId, slot }, { cause: 'hand' }).catch(() => {});
});
process.on('disconnect', () => process.exit());
process.on('SIGTERM', () => void worker[Symbol.asyncDispose]().then(() => process.exit()));
process.send?.('ready');
