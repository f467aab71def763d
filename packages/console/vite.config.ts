import { join } from 'node:path';
import { defineConfig } from 'vite';

const ROOT = join(import.meta.dirname, '../..');

/** Builds the console into `dist/console`, from where it is served. `npm run build:console` */
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
    // The page's policy forbids inline scripts and styles, and a data: URL is inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
  },
});
