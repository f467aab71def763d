/** Compares the connections of a process with the files that it may open: each connection is one. */
import { readFileSync } from 'node:fs';
import type { Settings } from '../config/settings.ts';

/** Files of a process in addition to its connections and reads of PostgreSQL: other servers, probes, modules, the system's own. */
const OTHERS = 128;

export interface OpenFilesProblem {
  /** The connections that fit. */
  readonly connections: number;
  readonly what: string;
  readonly remedy: string;
}

/** Returns the most files that this process may open; undefined if the system does not show it. Node has raised the soft limit. */
function openFilesLimit(): number | undefined {
  try {
    const [, limit] =
      /^Max open files {1,40}(\d{1,20})/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}

/** Returns why MAX_CONNECTIONS does not fit; undefined if the files suffice. @param files the limit, for tests */
export function openFilesProblem(
  { MAX_CONNECTIONS: max, POSTGRES_READS: reads }: Pick<Settings, 'MAX_CONNECTIONS' | 'POSTGRES_READS'>,
  files = openFilesLimit(),
): OpenFilesProblem | undefined {
  if (files === undefined || max === 0) return undefined;
  const others = OTHERS + reads;
  if (max + others <= files) return undefined;
  const connections = Math.max(files - others, Math.floor(files / 2));
  return {
    connections,
    what: `MAX_CONNECTIONS is ${max}, but a process may open only ${files} files here, so it accepts ${connections} connections`,
    remedy: `raise the limit of open files to ${max + others} (LimitNOFILE of systemd, ulimits of Compose, ulimit -n), or set MAX_CONNECTIONS to ${connections}`,
  };
}
