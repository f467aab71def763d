#!/usr/bin/env node
/**
 * The program of the published package. All else is imported only where it can run: on an older Node.js it would fail
 * at an import, in words that name no remedy. Nothing imported up here may need a newer one.
 */
import { NODE_RANGE } from '../config/package.ts';

const [, major = 0, minor = 0] = /^>=(\d+)\.(\d+)$/.exec(NODE_RANGE) ?? [];
const [hasMajor = 0, hasMinor = 0] = process.versions.node.split('.').map(Number);

if (hasMajor > Number(major) || (hasMajor === Number(major) && hasMinor >= Number(minor)))
  await import('../cli.ts');
else {
  console.error(
    `fleetbook: needs Node.js ${major}.${minor} or newer, and this is ${process.version}; install one (https://nodejs.org), ` +
      `or run it with the one that npm brings: npx --package=node@26 -- node ${process.argv[1]}`,
  );
  process.exitCode = 1;
}
