#!/usr/bin/env node
import { enableCompileCache } from 'node:module';
import { inPackage } from './config/package.ts';

/**
 * Stores V8's compiled code for the next start, before the program is loaded: the first answer of `serve` takes 0.28 s of CPU
 * instead of 0.34 s (docs/decisions/0102-serve-listens-before-features-are-loaded.md). The folder is in `node_modules`, because
 * other users can write to the system's temporary folder. If it is read-only, a start takes longer.
 */
enableCompileCache(process.env.NODE_COMPILE_CACHE ?? inPackage('node_modules/.cache/node-compile-cache'));

const { main } = await import('./cli/commands.ts');
const code = await main(process.argv.slice(2), process.env);
// `doctor` and `serve` may have set it.
if (code !== 0) process.exitCode = code;
