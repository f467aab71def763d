import { type Logger, pino } from 'pino';
import { logFields } from '../../src/app/log-context.ts';

export interface LoggedLine {
  readonly level: number;
  readonly msg: string;
  readonly sourceId?: string;
  readonly run?: number;
  readonly slot?: string;
  readonly requestId?: string;
}

/** A logger with the fields of the programs' logger, and each line that it wrote. */
export function recordedLog(): { readonly logger: Logger; readonly lines: readonly LoggedLine[] } {
  const lines: LoggedLine[] = [];
  const write = (json: string) => lines.push(JSON.parse(json) as LoggedLine);
  return { logger: pino({ level: 'debug', mixin: logFields }, { write }), lines };
}
