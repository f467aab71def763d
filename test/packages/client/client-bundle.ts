/** Bundles the client as an application does: one minified file, made by Vite. */

import { build } from 'vite';
import { inPackage } from '../../../src/config/package.ts';

export interface ClientBundle {
  readonly module: string;
  readonly script: string;
  /** Imports of the module; a correct bundle has none. */
  readonly imports: readonly string[];
}

export async function clientBundle(): Promise<ClientBundle> {
  const built = await build({
    configFile: false,
    logLevel: 'error',
    build: {
      write: false,
      minify: true,
      target: 'es2022',
      lib: { entry: inPackage('packages/client/src/index.ts'), name: 'fleetbook', formats: ['es', 'iife'] },
      // A module that cannot be bundled must be visible in the output, not replaced by an empty module.
      rolldownOptions: { external: /^node:/ },
    },
  });
  const outputs = Array.isArray(built) ? built : [];
  const [module, script] = outputs.map(({ output: [chunk] }) => chunk);
  if (!module || !script) throw new Error('Vite has built something else than two formats');
  return { module: module.code, script: script.code, imports: [...module.imports, ...module.dynamicImports] };
}
