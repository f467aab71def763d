/** The console: pages for a browser in the operators' server, and their API. See docs/console.md. */
import type { Feature } from '../../app/feature.ts';

export const consoleFeature: Feature = {
  name: 'console',
  operations: async (context) => (await import('./part.ts')).openConsole(context),
};
