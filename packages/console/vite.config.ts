import { join } from 'node:path';
import { defineConfig } from 'vite';

const ROOT = join(import.meta.dirname, '../..');

/** Builds the console into `dist/console`, the folder that the worker serves. `npm run build:console` */
export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  logLevel: 'warn',
  publicDir: false,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: join(ROOT, 'dist/console'),
    emptyOutDir: true,
    target: 'es2022',
    // The content security policy forbids inline scripts and styles; data: URLs count as inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
  },
});
