/** A worker in a separate process that can be killed. Each message is the id of a source to run. */
import { pino } from 'pino';
import { readConfig } from '../../../src/config/config.ts';
import { latestSlot } from '../../../src/domain/schedule.ts';
import { startWorker } from '../../../workers/main.ts';

const config = readConfig(process.env);
const worker = await startWorker(config, pino({ level: 'silent' }));
process.on('message', (sourceId: string) => {
  const source = config.sources.find(({ id }) => id === sourceId);
  if (!source) throw new Error(`there is no source ${sourceId}`);
  const slot = latestSlot(source.schedule, new Date());
  // Without the queue nothing runs, as with a manual run.
  worker.queues.sync.add('sync', { sourceId, slot, isAdditional: true }).catch(() => {});
});
process.on('disconnect', () => process.exit());
process.on('SIGTERM', () => void worker[Symbol.asyncDispose]().then(() => process.exit()));
process.send?.('ready');
