import cluster from 'node:cluster';
import { type ChildRun, type ProcessCommand, runOf } from './child-run.ts';

/**
 * Starts a process that may listen where its siblings do (node:cluster). Ctrl-C on a terminal reaches it as well as
 * us.
 */
export function startSharing(command: ProcessCommand): ChildRun {
  cluster.setupPrimary({
    exec: command.script,
    args: [...(command.args ?? [])],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const worker = cluster.fork(command.env);
  // The same error comes from the process, where it is seen to; here nobody listening would be the end of us.
  worker.on('error', () => {});
  return runOf(worker.process);
}

/** Whether this process was started by `startSharing`. */
export const isSharing = (): boolean => cluster.isWorker;
