#!/usr/bin/env node
import manifest from '../package.json' with { type: 'json' };
import { BadEnvironment, serveTools } from './serve.ts';

const stopped = Promise.withResolvers<void>();
process.once('SIGINT', stopped.resolve).once('SIGTERM', stopped.resolve);
const log = (line: string) => process.stderr.write(`${line}\n`);
try {
  await serveTools({ env: process.env, version: manifest.version, stopped: stopped.promise, log });
} catch (error) {
  if (!(error instanceof BadEnvironment)) throw error;
  log(`fleetbook-mcp: ${error.message}`);
  process.exitCode = 2;
}
