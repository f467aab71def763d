/**
 * Keeps what V8 makes of our modules, so that the next start does not make it again; imported before everything that is
 * large. It lies where the packages lie and not in the system's temporary folder, where others could put theirs: who may
 * write there may change the program anyway. Where nothing can be written, starts take a little longer.
 */
import { enableCompileCache } from 'node:module';
import { inPackage } from '../config/package.ts';

enableCompileCache(process.env.NODE_COMPILE_CACHE ?? inPackage('node_modules/.cache/node-compile-cache'));
