import { whenParentIsGone } from '../processes/ipc.ts';

/** Resolves on Ctrl-C, SIGTERM, or when `up`, which started this process, is gone. A second Ctrl-C ends at once. */
export function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    let asked = false;
    const on = (signal: NodeJS.Signals) => {
      if (asked && signal === 'SIGINT') process.exit(130);
      asked = true;
      resolve(signal);
    };
    process.on('SIGINT', on).on('SIGTERM', on);
    whenParentIsGone(() => resolve('parent gone'));
  });
}
