import { BadEnvironment, serveTools } from '../../packages/mcp/src/serve.ts';
import { VERSION } from '../config/package.ts';
import type { Environment } from '../config/source-config.ts';
import { UsageFailure } from './terminal/failure.ts';
import { printAside } from './terminal/print.ts';
import { stopSignal } from './terminal/terminal.ts';

/** Does what the package `@fleetbook/mcp` does. @throws UsageFailure that names the variable that is missing or wrong */
export async function mcp(env: Environment): Promise<void> {
  try {
    await serveTools({ env, version: VERSION, stopped: stopSignal(), log: printAside });
  } catch (error) {
    if (error instanceof BadEnvironment) throw new UsageFailure(error.message);
    throw error;
  }
}
