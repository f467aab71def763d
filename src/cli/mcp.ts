import type { Command } from 'commander';
import { VERSION } from '../config/package.ts';
import type { Environment } from '../config/source-config.ts';
import { UsageFailure } from './terminal/failure.ts';
import type { Env } from './terminal/options.ts';
import { printAside } from './terminal/output.ts';
import { stopSignal } from './terminal/terminal.ts';

export function define(program: Command, _env: Env, given: Environment): void {
  program
    .command('mcp')
    .description('give a language model tools for machines, prices and clusters, over stdin and stdout')
    .action(() => mcp(given));
}

/** Runs the server of the package `@fleetbook/mcp`. @throws UsageFailure that names the missing or wrong variable */
async function mcp(env: Environment): Promise<void> {
  const { BadEnvironment, serveTools } = await import('../../packages/mcp/src/serve.ts');
  try {
    await serveTools({ env, version: VERSION, stopped: stopSignal(), log: printAside });
  } catch (error) {
    if (error instanceof BadEnvironment) throw new UsageFailure(error.message);
    throw error;
  }
}
