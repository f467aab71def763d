/** Before each test file: fast-check's tests have the seed of all random tests. */
import fc from 'fast-check';
import { SEED } from './random.ts';

const path = process.env.RANDOM_PATH;
fc.configureGlobal({ seed: SEED, ...(path === undefined ? {} : { path }) });
