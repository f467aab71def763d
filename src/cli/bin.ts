#!/usr/bin/env node
/** Checks the version of Node.js first. This file and its import must run on old versions. */
import { NODE_RANGE } from '../config/package.ts';

const [, major = 0, minor = 0] = /^>=(\d+)\.(\d+)$/.exec(NODE_RANGE) ?? [];
const [hasMajor = 0, hasMinor = 0] = process.versions.node.split('.').map(Number);

if (hasMajor > Number(major) || (hasMajor === Number(major) && hasMinor >= Number(minor)))
  await import('../cli.ts');
else {
  console.error(
    `fleetbook: needs Node.js ${major}.${minor} or newer, but runs on ${process.version}; install a newer one (https://nodejs.org), ` +
      `or use the one from npm: npx --package=node@26 -- node ${process.argv[1]}`,
  );
  process.exitCode = 1;
}
