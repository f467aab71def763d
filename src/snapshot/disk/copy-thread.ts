/** The thread of a reader's disk copy: it alone waits for the disk. */
import { parentPort, workerData } from 'node:worker_threads';
import { CopyFile } from './copy-file.ts';
import { DamagedCopy, reasonOf } from './failures.ts';
import type { CopyLimits, Kind, Question, Questions, Reply } from './messages.ts';

export interface CopyThreadData {
  readonly folder: string;
  readonly limits: CopyLimits;
}

type Answers = { readonly [K in Kind]: (ask: Questions[K]['ask']) => Questions[K]['answer'] };

const { folder, limits } = workerData as CopyThreadData;
const file = new CopyFile(folder, limits);

const answers: Answers = {
  write: (batch) => file.write(batch),
  supersede(batch) {
    file.write(batch);
    return batch.floors.map(([id]) => file.versions(batch.lineage, id));
  },
  read: ({ lineage, id, since, now }) => file.read(lineage, id, since, now),
  remove: (id) => void file.remove(id),
  region: ({ lineage, machineId }) => file.regionOfMachine(lineage, machineId),
  lineage: () => file.lineage(),
  stamps: (lineage) => file.stamps(lineage),
  prune(now) {
    file.prune(now);
    return file.sizes();
  },
  close: () => void file.close(),
};

function reply<K extends Kind>({ number, kind, ask }: Question<K>): Reply<K> {
  try {
    const answer = answers[kind](ask);
    return { number, answer, dropped: file.wasBegun };
  } catch (error) {
    const { message } = error as Error;
    return {
      number,
      failure: { reason: reasonOf(error), message },
      dropped: dropUnlessWhole(kind, ask, error),
    };
  }
}

/**
 * Removes a copy that cannot be read, and one that did not take what puts older versions out: better no copy than one
 * that gives what is known to be outdated.
 */
function dropUnlessWhole(kind: Kind, ask: Question['ask'], error: unknown): boolean {
  const reason = reasonOf(error);
  const isWholeDamaged = reason === 'damaged' && !(error instanceof DamagedCopy);
  const hasFloors =
    kind === 'supersede' || (kind === 'write' && (ask as Questions['write']['ask']).floors.length > 0);
  if (!isWholeDamaged && !(hasFloors && reason !== 'locked')) return false;
  try {
    file.drop();
    return true;
  } catch {
    // A disk that can only be read: nothing is confirmed any more, and what is there gets too old.
    return false;
  }
}

parentPort?.on('message', (question: Question) => {
  const answered = reply(question);
  const value = (answered.answer as { value?: Uint8Array } | undefined)?.value;
  parentPort?.postMessage(answered, value ? [value.buffer as ArrayBuffer] : []);
});
