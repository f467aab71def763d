import { findSetpriv } from '../../src/processes/server-process.ts';

export const ORDINARY_USER = 65_534;
const setpriv = process.getuid?.() === 0 ? findSetpriv() : undefined;

/**
 * Command and arguments that run a program as an ordinary user; undefined without root. The user may read all files:
 * Node's program may be in a folder that only root can read.
 */
export const asOrdinaryUser: readonly string[] | undefined =
  setpriv === undefined
    ? undefined
    : [
        setpriv,
        `--reuid=${ORDINARY_USER}`,
        `--regid=${ORDINARY_USER}`,
        '--clear-groups',
        '--inh-caps=+dac_read_search',
        '--ambient-caps=+dac_read_search',
        '--',
      ];
