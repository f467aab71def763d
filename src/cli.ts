#!/usr/bin/env node
import './cli/compile-cache.ts';
import { main } from './cli/main.ts';

const code = await main(process.argv.slice(2), process.env);
// `doctor` and `serve` may have set it.
if (code !== 0) process.exitCode = code;
