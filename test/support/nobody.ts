import { findSetpriv } from '../../src/processes/server-process.ts';

export const NOBODY = 65_534;
const setpriv = process.getuid?.() === 0 ? findSetpriv() : undefined;

/**
 * Command and arguments that run a program as an ordinary user, or undefined where that is impossible: we are not root.
 * It may read everything, so that it runs this very Node also in a clone that only root may enter.
 */
export const asNobody: readonly string[] | undefined =
  setpriv === undefined
    ? undefined
    : [
        setpriv,
        `--reuid=${NOBODY}`,
        `--regid=${NOBODY}`,
        '--clear-groups',
        '--inh-caps=+dac_read_search',
        '--ambient-caps=+dac_read_search',
        '--',
      ];
